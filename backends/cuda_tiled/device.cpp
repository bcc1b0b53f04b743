#include "device.hpp"

#include "kernels.hpp"

namespace gpunn::cuda_tiled {

TiledDevice::TiledDevice(const gpunn_device_options& options)
    : TunedDevice(options, "cuda_tiled", {GPUNN_PLUGIN_VERSION}) {
  add_elementwise_kernels(*this);
  add_bias_kernels(*this);
  add_gemm_kernels(*this);
  add_convolution_kernels(*this);
  add_pooling_kernels(*this);
  add_shape_kernels(*this);
  add_softmax_kernels(*this);
  add_normalization_kernels(*this);
  add_optimizer_kernels(*this);
}

}  // namespace gpunn::cuda_tiled
