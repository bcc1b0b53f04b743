// The epilogue of algorithms that a library gives without one.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace gpunn::cudnn {

// y[rows, channels, size] += bias[channels] and, unless it is null, residual[rows, channels, size]; then the
// activation, which lets a NaN stay a NaN.
void add_bias(float* y, const float* bias, const float* residual, int64_t rows, int64_t channels, int64_t size,
              bool relu, cudaStream_t stream);

}  // namespace gpunn::cudnn
