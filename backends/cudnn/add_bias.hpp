// An epilogue kernel, for library algorithms that have none of their own.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace gpunn::cudnn {

// y[rows, channels, size] += bias[channels] and, unless it is null, residual[rows, channels, size]. The activation
// follows; it keeps NaNs.
void add_bias(float* y, const float* bias, const float* residual, int64_t rows, int64_t channels, int64_t size,
              bool relu, cudaStream_t stream);

}  // namespace gpunn::cudnn
