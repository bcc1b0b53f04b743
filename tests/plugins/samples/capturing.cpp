// A host backend that captures: between begin and end its kernels are only noted, a launch runs the notes. ADD, RELU
// and SCALE of f32; RELU says that it can't be captured where control.op_flags lacks GPUNN_OP_CAPTURABLE.
#include <gpunn/plugin.hpp>

#include <vector>

#include "control.hpp"

namespace {

using namespace gpunn::plugin;

Control control;

struct Work {
  int32_t op;
  float factor;
  const float* a;
  const float* b;
  float* y;
  int64_t count;

  void run() const {
    for (int64_t i = 0; i < count; ++i) {
      if (op == GPUNN_OP_ADD) y[i] = a[i] + b[i];
      if (op == GPUNN_OP_SCALE) y[i] = factor * a[i];
      if (op == GPUNN_OP_RELU) y[i] = a[i] > 0 ? a[i] : 0;
    }
  }
};

void fail_if_told(const char* function) {
  if (std::strcmp(control.fail_in, function) == 0)
    throw Failure(GPUNN_INTERNAL, std::string(function) + " was told to");
}

class Tape final : public CapturedGraph {
 public:
  explicit Tape(std::vector<Work> work) : work_(std::move(work)) { ++control.open_graphs; }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  ~Tape() override { --control.open_graphs; }
  void launch(Stream&) override {
    fail_if_told("graph_launch");
    ++control.launches;
    for (const Work& work : work_) work.run();
  }

 private:
  std::vector<Work> work_;
};

class RecordingStream final : public Stream {
 public:
  void* native() override { return nullptr; }
  void synchronize() override {
    if (recording_) throw Failure(GPUNN_INTERNAL, "a stream can't be synchronised while it captures");
  }
  void copy(void* to, const void* from, uint64_t bytes, int32_t) override { std::memmove(to, from, bytes); }
  void fill(void* to, uint8_t value, uint64_t bytes) override { std::memset(to, value, bytes); }
  void begin_capture() override {
    fail_if_told("capture_begin");
    recording_ = true;
  }
  std::unique_ptr<CapturedGraph> end_capture() override {
    recording_ = false;
    auto tape = std::make_unique<Tape>(std::exchange(notes_, {}));
    fail_if_told("capture_end");
    return tape;
  }
  void take(const Work& work) {
    if (recording_) {
      fail_if_told("op_enqueue");
      ++control.recorded;
      notes_.push_back(work);
    } else {
      ++control.enqueues;
      work.run();
    }
  }

 private:
  bool recording_ = false;
  std::vector<Work> notes_;
};

class CapturingDevice final : public HostDevice {
 public:
  CapturingDevice() {
    for (const int32_t op : {GPUNN_OP_ADD, GPUNN_OP_SCALE, GPUNN_OP_RELU}) {
      add(op, {.query =
                   [op](const OpDesc&) {
                     Support support = Support::yes();
                     if (op == GPUNN_OP_RELU) support.flags = control.op_flags;
                     return support;
                   },
               .create =
                   [op](const OpDesc& desc) {
                     const float factor = op == GPUNN_OP_SCALE ? desc.attrs<gpunn_scale_attrs>().factor : 1.0F;
                     return make_kernel([op, factor](Stream& stream, const OpArgs& args) {
                       const float* b = args.inputs() > 1 ? args.in<float>(1) : nullptr;
                       static_cast<RecordingStream&>(stream).take(
                           {op, factor, args.in<float>(0), b, args.out<float>(0), element_count(args.output(0))});
                     });
                   }});
    }
  }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<RecordingStream>(); }
};

class Capturing final : public Backend {
 public:
  const char* name() const override { return "capturing"; }
  const char* version() const override { return "1"; }
  bool can_capture() const override { return true; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options&) override { return std::make_unique<CapturingDevice>(); }
  const void* extension(const char* name) override {
    return std::strcmp(name, "test.control") == 0 ? &control : nullptr;
  }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Capturing>(major, minor);
}
