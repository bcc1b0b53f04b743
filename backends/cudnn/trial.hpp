// Kernels of the autotuner and of algorithms that a library gives without their epilogue.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace gpunn::cudnn {

// x[i] uniform in [-1, 1), a function of seed and i. Zeros would do for results, but not for times: they draw less
// power, and the clock stays higher than it is in a training.
void fill_uniform(float* x, int64_t n, uint32_t seed, cudaStream_t stream);

// Adds to *count, in device memory, how many elements of a and b differ by more than the tolerance, or are a NaN in one
// alone.
void count_differences(const float* a, const float* b, int64_t n, float tolerance, unsigned* count,
                       cudaStream_t stream);

// y[rows, channels, size] += bias[channels], then the activation, which lets a NaN stay a NaN.
void add_bias(float* y, const float* bias, int64_t rows, int64_t channels, int64_t size, bool relu,
              cudaStream_t stream);

}  // namespace gpunn::cudnn
