// The op families that this backend serves, a file each.
#pragma once

namespace gpunn::cudnn {

class CudnnDevice;

void add_matmul_kernels(CudnnDevice& device);
void add_convolution_kernels(CudnnDevice& device);
void add_softmax_kernels(CudnnDevice& device);

}  // namespace gpunn::cudnn
