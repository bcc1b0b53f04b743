// The op families of this backend, a file each.
#pragma once

namespace gpunn::cuda_tiled {

class TiledDevice;

void add_elementwise_kernels(TiledDevice& device);
void add_bias_kernels(TiledDevice& device);
void add_gemm_kernels(TiledDevice& device);
void add_convolution_kernels(TiledDevice& device);
void add_pooling_kernels(TiledDevice& device);
void add_shape_kernels(TiledDevice& device);
void add_softmax_kernels(TiledDevice& device);
void add_normalization_kernels(TiledDevice& device);
void add_optimizer_kernels(TiledDevice& device);

}  // namespace gpunn::cuda_tiled
