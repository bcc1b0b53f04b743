// The plugin "cudnn": convolutions and softmax through cuDNN 9, and matrix products through cuBLASLt. All other ops
// fall back to its base, cuda_tiled.
#include <gpunn/plugin.hpp>

#include <cstring>
#include <string>

#include <cudnn.h>

#include "cudnn_check.hpp"
#include "device.hpp"
#include "plugin_version.hpp"

namespace gpunn::cudnn {
namespace {

class CudnnBackend final : public plugin::Backend {
 public:
  const char* name() const override { return "cudnn"; }
  const char* version() const override { return backends::kPluginVersion; }
  const char* build() const override {
    static const std::string text = std::string(cuda::build_text()) + ", cuDNN " + version_text(CUDNN_VERSION) +
                                    ", cuBLASLt " + std::to_string(CUBLAS_VER_MAJOR) + "." +
                                    std::to_string(CUBLAS_VER_MINOR) + "." + std::to_string(CUBLAS_VER_PATCH);
    return text.c_str();
  }
  const char* base() const override { return "cuda_tiled"; }
  const char* alternatives() const override { return "cuda_tiled"; }
  const void* extension(const char* name) override {
    return std::strcmp(name, GPUNN_EXTENSION_COLLECTIVE) == 0 ? plugin::collective_extension<CudnnDevice>() : nullptr;
  }
  int priority() const override { return 40; }
  bool concurrent_streams() const override { return true; }
  int probe() override {
    const int devices = cuda::probe_devices();
    if (cudnnGetVersion() < CUDNN_VERSION) {
      throw plugin::Failure(GPUNN_NO_DEVICE, "cuDNN " + version_text(cudnnGetVersion()) +
                                                 " is installed, and this plugin was built with " +
                                                 version_text(CUDNN_VERSION) +
                                                 ": install that or a later 9.x, or build gpunn with the older one");
    }
    return devices;
  }
  std::unique_ptr<plugin::Device> open(const gpunn_device_options& options) override {
    return std::make_unique<CudnnDevice>(options);
  }
};

}  // namespace
}  // namespace gpunn::cudnn

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t host_major, uint16_t host_minor) {
  return gpunn::plugin::export_backend<gpunn::cudnn::CudnnBackend>(host_major, host_minor);
}
