// A host plugin that breaks the contract outside its kernels: its queries crash on nonsense, it opens devices that it
// does not have, and what it says of its device makes no sense.
#include <csignal>

#include "loops.hpp"

namespace {

using namespace samples;

class CrashingDevice final : public gpunn::plugin::HostDevice {
 public:
  CrashingDevice() {
    add(GPUNN_OP_CONV2D, {[](const OpDesc& desc) {
                            // What a division by a stride of 0 does, without asking a sanitizer's leave.
                            if (desc.attrs<gpunn_conv2d_attrs>().stride[0] == 0) std::raise(SIGFPE);
                            return Support::no("conv2d is for later");
                          },
                          {}});
  }
  void info(gpunn_device_info& info) override {
    HostDevice::info(info);
    info.compute_units = 0;
  }
};

class Crashing final : public gpunn::plugin::Backend {
 public:
  const char* name() const override { return "crashing"; }
  const char* version() const override { return "1"; }
  int probe() override { return 1; }
  std::unique_ptr<gpunn::plugin::Device> open(const gpunn_device_options&) override {
    return std::make_unique<CrashingDevice>();
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Crashing>(major, minor);
}
