// The plugin "cuda_naive": every op as the simplest correct CUDA kernel. It serves to learn from and as a reference to
// check other backends against.
#include <gpunn/plugin.hpp>

#include <cstring>

#include "cuda_common/collective.hpp"
#include "cuda_common/device.hpp"
#include "kernels.hpp"
#include "plugin_version.hpp"

namespace gpunn::cuda_naive {
namespace {

class NaiveDevice final : public cuda::CudaDevice {
 public:
  explicit NaiveDevice(const gpunn_device_options& options) : CudaDevice(options) {
#define GPUNN_FAMILY(name) add_##name##_kernels(*this);
#include "naive_families.inc"
#undef GPUNN_FAMILY
  }

  std::unique_ptr<plugin::Communicator> create_communicator(const plugin::CommunicatorOptions& options) {
    return cuda::create_communicator(*this, options);
  }
};

class NaiveBackend final : public plugin::Backend {
 public:
  const char* name() const override { return "cuda_naive"; }
  const char* version() const override { return backends::kPluginVersion; }
  const char* build() const override { return cuda::build_text(); }
  int priority() const override { return 20; }
  bool can_capture() const override { return true; }
  bool concurrent_streams() const override { return true; }
  const void* extension(const char* name) override {
    return std::strcmp(name, GPUNN_EXTENSION_COLLECTIVE) == 0 ? plugin::collective_extension<NaiveDevice>() : nullptr;
  }
  int probe() override { return cuda::probe_devices(); }
  std::unique_ptr<plugin::Device> open(const gpunn_device_options& options) override {
    return std::make_unique<NaiveDevice>(options);
  }
};

}  // namespace
}  // namespace gpunn::cuda_naive

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t host_major, uint16_t host_minor) {
  return gpunn::plugin::export_backend<gpunn::cuda_naive::NaiveBackend>(host_major, host_minor);
}
