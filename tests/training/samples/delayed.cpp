// The cpu backend's kernels behind streams that are really asynchronous: each has a thread of its own, which runs what
// is put on the stream in order, as a GPU does. What is not ordered by an event or a wait goes wrong here.
#include "delayed.hpp"

#include <gpunn/plugin.hpp>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels.hpp"
#include "threads/parallel.hpp"

namespace {

using namespace gpunn::plugin;
using Work = std::function<void()>;

DelayedControl control;

void wait_microseconds(int count) {
  if (count > 0) std::this_thread::sleep_for(std::chrono::microseconds(count));
}

// Notes where two threads are in the plugin at once.
class Call {
 public:
  Call() {
    if (inside_++ != 0) ++control.overlapping_calls;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { --inside_; }

 private:
  static inline std::atomic<int> inside_{0};
};

class DelayedStream final : public Stream {
 public:
  explicit DelayedStream(bool first) : first_(first), thread_([this] { run(); }) {}
  DelayedStream(const DelayedStream&) = delete;
  DelayedStream& operator=(const DelayedStream&) = delete;
  ~DelayedStream() override {
    put([this] { leaving_ = true; });
    thread_.join();
  }

  void* native() override { return this; }
  void synchronize() override {
    const Call call;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
    if (!failure_.empty()) throw Failure(GPUNN_INTERNAL, std::exchange(failure_, ""));
  }
  void copy(void* to, const void* from, uint64_t bytes, int32_t direction) override {
    const Call call;
    put([=] {
      if (direction == GPUNN_HOST_TO_DEVICE) wait_microseconds(control.copy_delay);
      std::memcpy(to, from, bytes);
    });
  }
  void fill(void* to, uint8_t value, uint64_t bytes) override {
    const Call call;
    put([=] {
      wait_microseconds(control.fill_delay);
      std::memset(to, value, bytes);
    });
  }
  void begin_capture() override { recording_ = true; }
  std::unique_ptr<CapturedGraph> end_capture() override;

  void put(Work work) {
    if (recording_) {
      recorded_.push_back(std::move(work));
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
    }
    changed_.notify_all();
  }
  bool first() const { return first_; }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!leaving_) {
      changed_.wait(lock, [this] { return !queue_.empty(); });
      const Work work = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      lock.unlock();
      std::string failure;
      try {
        work();
      } catch (const std::exception& exception) {
        failure = exception.what();
      }
      lock.lock();
      if (!failure.empty()) failure_ = failure;
      busy_ = false;
      changed_.notify_all();
    }
  }

  const bool first_;  // of its device
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  bool busy_ = false, leaving_ = false, recording_ = false;
  std::vector<Work> recorded_;
  std::string failure_;
  std::thread thread_;
};

class Recording final : public CapturedGraph {
 public:
  explicit Recording(std::vector<Work> work) : work_(std::move(work)) {}
  void launch(Stream& stream) override {
    const Call call;
    ++control.launches;
    for (const Work& work : work_) static_cast<DelayedStream&>(stream).put(work);
  }

 private:
  std::vector<Work> work_;
};

std::unique_ptr<CapturedGraph> DelayedStream::end_capture() {
  recording_ = false;
  return std::make_unique<Recording>(std::exchange(recorded_, {}));
}

class DelayedEvent final : public Event {
 public:
  void record(Stream& stream) override {
    const Call call;
    auto& on = static_cast<DelayedStream&>(stream);
    on_first_ = on.first();
    on.put([state = state_, number = ++recorded_] {
      const std::lock_guard lock(state->mutex);
      state->reached = number;
      state->time = std::chrono::steady_clock::now();
      state->changed.notify_all();
    });
  }
  // For the last record before this call.
  void wait(Stream& stream) override {
    const Call call;
    if (on_first_ ? control.forget_first : control.forget_others) return;
    static_cast<DelayedStream&>(stream).put([state = state_, number = recorded_] { state->wait_for(number); });
  }
  void synchronize() override {
    const Call call;
    if (!control.forget_host) state_->wait_for(recorded_);
  }
  float milliseconds_since(Event& start) override {
    const auto& other = static_cast<DelayedEvent&>(start);
    return std::chrono::duration<float, std::milli>(state_->time - other.state_->time).count();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    int reached = 0;
    std::chrono::steady_clock::time_point time;
    void wait_for(int number) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return reached >= number; });
    }
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
  int recorded_ = 0;
  bool on_first_ = false;
};

// Arguments that outlive the call.
class KeptArgs {
 public:
  explicit KeptArgs(const OpArgs& args) {
    for (std::size_t i = 0; i < args.inputs(); ++i) tensors_.push_back(args.input(i));
    for (std::size_t i = 0; i < args.outputs(); ++i) tensors_.push_back(args.output(i));
    args_.n_inputs = static_cast<uint32_t>(args.inputs());
    args_.n_outputs = static_cast<uint32_t>(args.outputs());
    args_.workspace = args.workspace<void>();
  }
  void run(Kernel& kernel, Stream& stream) const {
    std::vector<const gpunn_tensor*> pointers;
    for (const gpunn_tensor& tensor : tensors_) pointers.push_back(&tensor);
    gpunn_op_args args = args_;
    args.struct_size = sizeof(args);
    args.inputs = pointers.data();
    args.outputs = pointers.data() + args.n_inputs;
    kernel.enqueue(stream, OpArgs(args));
  }

 private:
  std::vector<gpunn_tensor> tensors_;
  gpunn_op_args args_{};
};

class DelayedDevice final : public HostDevice {
 public:
  explicit DelayedDevice(int threads) {
    gpunn::cpu::set_thread_count(threads);
    gpunn::cpu::add_kernels(kernels_);
    constexpr int32_t kFirstOp = 100, kLastOp = 999;
    for (int32_t op = kFirstOp; op <= kLastOp; ++op) {
      add(op, {.query = [this](const OpDesc& desc) { return query(desc); },
               .create = [this](const OpDesc& desc) { return make(desc); }});
    }
  }

  void info(gpunn_device_info& info) override {
    HostDevice::info(info);
    info.free_bytes = static_cast<uint64_t>(control.free_bytes.load());
  }
  std::unique_ptr<Stream> create_stream() override {
    const Call call;
    return std::make_unique<DelayedStream>(std::exchange(first_, false));
  }
  std::unique_ptr<Event> create_event() override {
    const Call call;
    return std::make_unique<DelayedEvent>();
  }

 private:
  Support query(const OpDesc& desc) const {
    Support support = kernels_.choose(desc).support;
    if (!control.capturable) support.flags &= ~uint32_t{GPUNN_OP_CAPTURABLE};
    return support;
  }
  std::unique_ptr<Kernel> make(const OpDesc& desc) {
    const std::shared_ptr<Kernel> kernel = kernels_.choose(desc).factory->create(desc);
    return make_kernel([kernel, op = desc.op()](Stream& stream, const OpArgs& args) {
      const Call call;
      static_cast<DelayedStream&>(stream).put([kernel, op, &stream, kept = KeptArgs(args)] {
        if (op == GPUNN_OP_GATHER_NORMALIZE) wait_microseconds(control.gather_delay);
        kept.run(*kernel, stream);
      });
    });
  }

  HostDevice kernels_;
  bool first_ = true;
};

class Delayed final : public Backend {
 public:
  const char* name() const override { return "delayed"; }
  const char* version() const override { return "1"; }
  bool can_capture() const override { return true; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options& options) override {
    return std::make_unique<DelayedDevice>(options.host_threads);
  }
  const void* extension(const char* name) override {
    return std::strcmp(name, "test.delayed") == 0 ? &control : nullptr;
  }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Delayed>(major, minor);
}
