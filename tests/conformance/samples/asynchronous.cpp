// A backend that works behind the caller's back: a thread a stream, events between them, and graphs that are captured.
// Its kernels are those of the cpu plugin, which it loads by itself. The build makes several plugins of this file, each
// with a name and perhaps a fault; with a base it is an overlay that wraps the base's streams and serves RELU alone.
#include <gpunn/plugin.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "cpu_library.hpp"
#include "worker.hpp"

namespace {

using namespace gpunn::plugin;
using samples::CpuLibrary;
using samples::KeptArgs;
using samples::Mark;
using samples::Worker;

#define FAULT_NONE 0
#define FAULT_EVENTS 1       // a stream does not wait for an event
#define FAULT_STREAM 2       // RELU is put on a stream of its own
#define FAULT_FROZEN_RATE 3  // a captured TABLE_LOAD gives what it gave when it was captured
#define FAULT_WRAPPING 4     // a wrapped stream is another one
#define FAULT_SHARED 5       // kernels of RELU share their scratch memory
constexpr int kFault = SAMPLE_FAULT;
constexpr const char* kBase = SAMPLE_BASE;
constexpr bool kOverlay = kBase[0] != '\0';
constexpr bool kConcurrent = SAMPLE_CONCURRENT;

class AsyncStream final : public Stream {
 public:
  AsyncStream() : own_(std::make_unique<Worker>()), worker_(own_.get()), native_(worker_) {}
  explicit AsyncStream(void* native) : worker_(static_cast<Worker*>(native)), native_(native) {
    if (kFault != FAULT_WRAPPING) return;
    own_ = std::make_unique<Worker>();
    worker_ = own_.get();
  }

  void* native() override { return native_; }
  void synchronize() override {
    refuse_capture("synchronised");
    worker_->drain();
  }
  void copy(void* to, const void* from, uint64_t bytes, int32_t) override {
    if (bytes != 0) post([=] { std::memmove(to, from, bytes); });
  }
  void fill(void* to, uint8_t value, uint64_t bytes) override {
    if (bytes != 0) post([=] { std::memset(to, value, bytes); });
  }
  void begin_capture() override {
    refuse_capture("captured twice");
    capturing_ = true;
  }
  std::unique_ptr<CapturedGraph> end_capture() override;

  void post(Worker::Task task) {
    if (capturing_) {
      captured_.push_back(std::move(task));
    } else {
      worker_->post(std::move(task));
    }
  }
  bool capturing() const { return capturing_; }
  void refuse_capture(const char* what) const {
    if (capturing_) throw Failure(GPUNN_INVALID_ARGUMENT, std::string("a stream that captures can't be ") + what);
  }

 private:
  std::unique_ptr<Worker> own_;  // null in a wrapper
  Worker* worker_;
  void* native_;
  bool capturing_ = false;
  std::vector<Worker::Task> captured_;
};

class TaskGraph final : public CapturedGraph {
 public:
  explicit TaskGraph(std::vector<Worker::Task> tasks) : tasks_(std::move(tasks)) {}
  void launch(Stream& stream) override {
    static_cast<AsyncStream&>(stream).post([this] {
      for (const Worker::Task& task : tasks_) task();
    });
  }

 private:
  std::vector<Worker::Task> tasks_;
};

std::unique_ptr<CapturedGraph> AsyncStream::end_capture() {
  capturing_ = false;
  return std::make_unique<TaskGraph>(std::exchange(captured_, {}));
}

class AsyncEvent final : public Event {
 public:
  void record(Stream& stream) override {
    mark_ = std::make_shared<Mark>();
    static_cast<AsyncStream&>(stream).post([mark = mark_] { mark->reach(); });
  }
  void wait(Stream& stream) override {
    if (kFault == FAULT_EVENTS || !mark_) return;
    static_cast<AsyncStream&>(stream).post([mark = mark_] { mark->wait(); });
  }
  void synchronize() override {
    if (mark_) mark_->wait();
  }
  float milliseconds_since(Event& start) override {
    return std::chrono::duration<float, std::milli>(mark_->time() - static_cast<AsyncEvent&>(start).mark_->time())
        .count();
  }

 private:
  std::shared_ptr<Mark> mark_;
};

// Memory that the kernels of RELU share.
struct Scratch {
  explicit Scratch(std::size_t size) : floats(size) {}

  std::vector<std::atomic<float>> floats;
  std::atomic<int> writes{0};
};

// ReLU by way of the scratch memory. Waits for another kernel to write its numbers there, since two threads need not
// run at the same time where other programs keep the cores.
void relu_through(Scratch& scratch, const gpunn_op_args& args) {
  constexpr std::chrono::milliseconds kPatience(50);
  const auto n = static_cast<std::size_t>(element_count(*args.inputs[0]));
  const auto* x = static_cast<const float*>(args.inputs[0]->data);
  auto* y = static_cast<float*>(args.outputs[0]->data);
  if (n > scratch.floats.size()) throw Failure(GPUNN_INVALID_ARGUMENT, "more elements than the scratch memory holds");
  for (std::size_t i = 0; i < n; ++i) scratch.floats[i] = x[i];
  const int own = ++scratch.writes;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (scratch.writes == own && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  for (std::size_t i = 0; i < n; ++i) y[i] = scratch.floats[i] < 0 ? 0.0F : scratch.floats[i].load();
}

class AsyncKernel final : public Kernel {
 public:
  AsyncKernel(CpuLibrary& cpu, Worker& astray, Scratch& scratch, const OpDesc& desc)
      : cpu_(cpu), astray_(astray), scratch_(scratch), op_(desc.op()), kernel_(cpu.create(desc)) {}
  ~AsyncKernel() override { cpu_.release(kernel_); }
  AsyncKernel(const AsyncKernel&) = delete;
  AsyncKernel& operator=(const AsyncKernel&) = delete;

  void enqueue(Stream& stream, const OpArgs& args) override {
    auto& on = static_cast<AsyncStream&>(stream);
    const auto kept = std::make_shared<const KeptArgs>(args);
    const Worker::Task task = [this, kept] { cpu_.run(kernel_, kept->get()); };
    if (kFault == FAULT_STREAM && op_ == GPUNN_OP_RELU) return astray_.post(task);
    if (kFault == FAULT_SHARED && op_ == GPUNN_OP_RELU) {
      return on.post([this, kept] { relu_through(scratch_, kept->get()); });
    }
    if (kFault == FAULT_FROZEN_RATE && op_ == GPUNN_OP_TABLE_LOAD && on.capturing()) {
      const int64_t last = args.input(0).dim[0] - 1;
      const float today = args.in<float>(0)[std::min(*args.in<int64_t>(1), last)];
      return on.post([to = args.out<float>(0), today] { *to = today; });
    }
    on.post(task);
  }

 private:
  CpuLibrary& cpu_;
  Worker& astray_;
  Scratch& scratch_;
  int32_t op_;
  gpunn_kernel* kernel_;
};

class AsyncDevice final : public HostDevice {
 public:
  explicit AsyncDevice(const gpunn_device_options& options) : cpu_(options) {
    const KernelFactory factory{
        [this](const OpDesc& desc) { return cpu_.query(desc); },
        [this](const OpDesc& desc) { return std::make_unique<AsyncKernel>(cpu_, astray_, scratch_, desc); }};
    if (kOverlay) {
      add(GPUNN_OP_RELU, factory);
    } else {
      for (int32_t op = 100; op < 2000; ++op) add(op, factory);
    }
  }
  void info(gpunn_device_info& info) override {
    HostDevice::info(info);
    copy_text(info.name, sizeof(info.name), "threads");
    copy_text(info.memory_domain, sizeof(info.memory_domain), "threads:of this process");
  }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<AsyncStream>(); }
  std::unique_ptr<Stream> wrap_stream(void* native) override { return std::make_unique<AsyncStream>(native); }
  std::unique_ptr<Event> create_event() override { return std::make_unique<AsyncEvent>(); }

 private:
  CpuLibrary cpu_;
  Worker astray_;
  Scratch scratch_{20'000};
};

class Asynchronous final : public Backend {
 public:
  const char* name() const override { return SAMPLE_NAME; }
  const char* version() const override { return "1"; }
  const char* base() const override { return kOverlay ? kBase : nullptr; }
  // What captures and is concurrent has to capture several streams at once, which this does not.
  bool can_capture() const override { return !kConcurrent; }
  bool concurrent_streams() const override { return kConcurrent; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options& options) override {
    if (options.index != 0) throw Failure(GPUNN_INVALID_ARGUMENT, "there is one device, of index 0");
    return std::make_unique<AsyncDevice>(options);
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Asynchronous>(major, minor);
}
