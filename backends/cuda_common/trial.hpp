// Kernels of the autotuner: they make random data and compare results.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace gpunn::cuda {

// Fills x with a function of seed and i: f32, bf16 and f16 uniformly in [-1, 1), u8 over its whole range. Zeros would
// suffice for results, but not for times: they draw less power, so that the clock stays higher than in training.
void fill_uniform(void* x, int32_t dtype, int64_t n, uint32_t seed, cudaStream_t stream);

// Adds to *count, in device memory, the number of elements of a and b that differ by more than the tolerance, or of
// which exactly one is a NaN.
void count_differences(const void* a, const void* b, int32_t dtype, int64_t n, float tolerance, unsigned* count,
                       cudaStream_t stream);

}  // namespace gpunn::cuda
