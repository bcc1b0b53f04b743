// The plugin "onednn": convolutions and matrix products by oneDNN, on top of "cpu". It exists to race `cpu` against it.
#include <gpunn/plugin.hpp>

#include <string>

#include <omp.h>

#include "kernels.hpp"
#include "operation.hpp"
#include "plugin_version.hpp"

namespace gpunn::onednn {
namespace {

class OneDnnDevice final : public plugin::HostDevice {
 public:
  explicit OneDnnDevice(const gpunn_device_options& options)
      : threads_(options.host_threads > 0 ? options.host_threads : omp_get_max_threads()) {
    add_convolution_kernels(*this, threads_);
    add_matmul_kernels(*this, threads_);
  }

  void info(gpunn_device_info& info) override {
    HostDevice::info(info);
    const dnnl_version_t* version = dnnl::version();
    plugin::copy_text(info.driver, sizeof(info.driver),
                      "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
                          std::to_string(version->patch));
    info.compute_units = threads_;
  }

 private:
  int threads_;
};

class OneDnnBackend final : public plugin::Backend {
 public:
  const char* name() const override { return "onednn"; }
  const char* version() const override { return backends::kPluginVersion; }
  const char* build() const override { return "C++ " __VERSION__; }
  const char* base() const override { return "cpu"; }
  int probe() override { return 1; }

  std::unique_ptr<plugin::Device> open(const gpunn_device_options& options) override {
    if (options.index != 0) throw plugin::Failure(GPUNN_INVALID_ARGUMENT, "the CPU is one device, of index 0");
    if (options.host_threads < 0) throw plugin::Failure(GPUNN_INVALID_ARGUMENT, "host_threads must not be negative");
    return std::make_unique<OneDnnDevice>(options);
  }
};

}  // namespace
}  // namespace gpunn::onednn

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t host_major, uint16_t host_minor) {
  return gpunn::plugin::export_backend<gpunn::onednn::OneDnnBackend>(host_major, host_minor);
}
