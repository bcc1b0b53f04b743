// The cpu backend's kernels on a device that gets lost, as a GPU does: the kernel that spoils it is put on the stream
// without complaint, and so is what follows; the next wait fails, and every one after that.
//
//   GPUNN_TEST_LOSE=train:7          by the op that reads the learning rate of step 7, counted from 0
//   GPUNN_TEST_LOSE=eval:1           by the op that picks batch 1 of an evaluation
//   GPUNN_TEST_LOSE=predict:0        by the op that normalises a batch
//   GPUNN_TEST_LOSE_ONCE=<file>      only if the file is not there yet; it is from then on
#include <gpunn/plugin.hpp>

#include <cstdlib>
#include <functional>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "kernels.hpp"

namespace {

using namespace gpunn::plugin;

class LosingStream final : public Stream {
 public:
  void* native() override { return nullptr; }
  void synchronize() override { require_device(); }
  void copy(void* to, const void* from, uint64_t bytes, int32_t direction) override {
    if (direction == GPUNN_DEVICE_TO_HOST) require_device();
    if (bytes != 0) std::memmove(to, from, bytes);
  }
  void fill(void* to, uint8_t value, uint64_t bytes) override {
    if (bytes != 0) std::memset(to, value, bytes);
  }
  void lose() { lost_ = true; }

 private:
  void require_device() const {
    if (lost_) throw Failure(GPUNN_DEVICE_LOST, "an address that is nowhere");
  }
  bool lost_ = false;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Whether the device is to be lost by a training's or evaluation's op at this step.
bool loses(const std::string& where, int64_t step) {
  if (variable("GPUNN_TEST_LOSE") != where + ":" + std::to_string(step)) return false;
  const std::string once = variable("GPUNN_TEST_LOSE_ONCE");
  if (once.empty()) return true;
  const int file = ::open(once.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (file >= 0) ::close(file);
  return file >= 0;
}

class CpuKernels final : public HostDevice {
 public:
  CpuKernels() { gpunn::cpu::add_kernels(*this); }
};

class LosingDevice final : public HostDevice {
 public:
  LosingDevice() {
    gpunn::cpu::add_kernels(*this);
    const auto step_in = [](std::size_t input) {
      return [input](const OpArgs& args) { return *args.in<int64_t>(input); };
    };
    add_spoiling(GPUNN_OP_TABLE_LOAD, step_in(1), "train");
    add_spoiling(GPUNN_OP_SAMPLE_INDICES, step_in(0), "eval");
    add_spoiling(
        GPUNN_OP_GATHER_NORMALIZE, [](const OpArgs&) { return int64_t{0}; }, "predict");
  }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<LosingStream>(); }

 private:
  // The cpu's kernel, preferred to it, that loses the device at the step that `step_of` tells.
  void add_spoiling(int32_t op, const std::function<int64_t(const OpArgs&)>& step_of, const std::string& where) {
    add(op, {.query =
                 [this](const OpDesc& desc) {
                   Support support = kernels_.choose(desc).support;
                   if (support.score > 0) support.score += 100;
                   return support;
                 },
             .create =
                 [this, step_of, where](const OpDesc& desc) {
                   // The evaluation takes the rows in order.
                   const bool shuffled =
                       desc.op() == GPUNN_OP_SAMPLE_INDICES && desc.attrs<gpunn_sample_attrs>().shuffle != 0;
                   std::shared_ptr<Kernel> kernel = kernels_.choose(desc).factory->create(desc);
                   return make_kernel([=](Stream& stream, const OpArgs& args) {
                     if (!shuffled && loses(where, step_of(args))) static_cast<LosingStream&>(stream).lose();
                     kernel->enqueue(stream, args);
                   });
                 }});
  }

  CpuKernels kernels_;
};

class Losing final : public Backend {
 public:
  const char* name() const override { return "losing"; }
  const char* version() const override { return "1"; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options&) override { return std::make_unique<LosingDevice>(); }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return export_backend<Losing>(major, minor);
}
