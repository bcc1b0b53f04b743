// A host backend that works as a device does: a stream is a thread with a queue, and every call that puts something on
// it returns at once. ADD, RELU and SCALE of f32; SCALE takes its time.
#include <gpunn/plugin.hpp>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "control.hpp"

namespace {

using namespace gpunn::plugin;
using Clock = std::chrono::steady_clock;

Control control;

constexpr std::chrono::microseconds kScaleTime{300};

class Queue final : public Stream {
 public:
  Queue() : worker_([this] { work(); }) {}
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() override {
    put([this] { ended_ = true; });
    worker_.join();
  }
  void* native() override { return this; }
  void put(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  void synchronize() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tasks_.empty(); });
  }
  void copy(void* to, const void* from, uint64_t bytes, int32_t) override {
    put([=] { std::memmove(to, from, bytes); });
  }
  void fill(void* to, uint8_t value, uint64_t bytes) override {
    put([=] { std::memset(to, value, bytes); });
  }

 private:
  // A task leaves the queue when it is done, so that an empty queue is an idle stream.
  void work() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      changed_.wait(lock, [&] { return !tasks_.empty(); });
      const std::function<void()> task = tasks_.front();
      lock.unlock();
      task();
      lock.lock();
      tasks_.pop_front();
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ended_ = false;  // touched by the worker alone
  std::thread worker_;
};

class Mark final : public Event {
 public:
  void record(Stream& stream) override {
    {
      const std::lock_guard lock(mutex_);
      ++recorded_;
    }
    static_cast<Queue&>(stream).put([this] {
      const std::lock_guard lock(mutex_);
      at_ = Clock::now();
      ++reached_;
      changed_.notify_all();
    });
  }
  void wait(Stream& stream) override {
    static_cast<Queue&>(stream).put([this] { synchronize(); });
  }
  void synchronize() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached_ == recorded_; });
  }
  float milliseconds_since(Event& start) override {
    auto& from = static_cast<Mark&>(start);
    const std::scoped_lock lock(mutex_, from.mutex_);
    if (reached_ != recorded_ || from.reached_ != from.recorded_) {
      throw Failure(GPUNN_INVALID_ARGUMENT, "an event was read before it was reached");
    }
    return std::chrono::duration<float, std::milli>(at_ - from.at_).count();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int recorded_ = 0, reached_ = 0;
  Clock::time_point at_;
};

class AsynchronousDevice final : public HostDevice {
 public:
  AsynchronousDevice() {
    for (const int32_t op : {GPUNN_OP_ADD, GPUNN_OP_SCALE, GPUNN_OP_RELU}) {
      add(op, {.query = [](const OpDesc&) { return Support::yes(); },
               .create =
                   [op](const OpDesc& desc) {
                     const float factor = op == GPUNN_OP_SCALE ? desc.attrs<gpunn_scale_attrs>().factor : 1.0F;
                     return make_kernel([op, factor](Stream& stream, const OpArgs& args) {
                       const auto* const a = args.in<float>(0);
                       const auto* const b = args.inputs() > 1 ? args.in<float>(1) : nullptr;
                       auto* const y = args.out<float>(0);
                       const int64_t count = element_count(args.output(0));
                       static_cast<Queue&>(stream).put([=] {
                         if (op == GPUNN_OP_SCALE) std::this_thread::sleep_for(kScaleTime);
                         for (int64_t i = 0; i < count; ++i) {
                           if (op == GPUNN_OP_ADD) y[i] = a[i] + b[i];
                           if (op == GPUNN_OP_SCALE) y[i] = factor * a[i];
                           if (op == GPUNN_OP_RELU) y[i] = a[i] > 0 ? a[i] : 0;
                         }
                       });
                     });
                   }});
    }
  }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<Queue>(); }
  std::unique_ptr<Event> create_event() override { return std::make_unique<Mark>(); }
};

class Asynchronous final : public Backend {
 public:
  const char* name() const override { return "asynchronous"; }
  const char* version() const override { return "1"; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options&) override { return std::make_unique<AsynchronousDevice>(); }
  const void* extension(const char* name) override {
    return std::strcmp(name, "test.control") == 0 ? &control : nullptr;
  }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Asynchronous>(major, minor);
}
