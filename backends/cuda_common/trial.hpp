// Kernels of the autotuner.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace gpunn::cuda {

// Of f32, bf16 or f16: x[i] uniform in [-1, 1), and of u8 in all it can be, a function of seed and i. Zeros would do
// for results, but not for times: they draw less power, and the clock stays higher than it is in a training.
void fill_uniform(void* x, int32_t dtype, int64_t n, uint32_t seed, cudaStream_t stream);

// Adds to *count, in device memory, how many elements of a and b differ by more than the tolerance, or are a NaN in one
// alone.
void count_differences(const void* a, const void* b, int32_t dtype, int64_t n, float tolerance, unsigned* count,
                       cudaStream_t stream);

}  // namespace gpunn::cuda
