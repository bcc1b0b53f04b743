#include "device.hpp"

#include "kernels.hpp"

namespace gpunn::cuda_tiled {

TiledDevice::TiledDevice(const gpunn_device_options& options)
    : TunedDevice(options, "cuda_tiled", {GPUNN_PLUGIN_VERSION}) {
  add_gemm_kernels(*this);
}

}  // namespace gpunn::cuda_tiled
