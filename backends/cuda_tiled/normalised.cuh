// A number that batch norm gives. Gradients compute it anew in place of reading what the ReLU behind made of it: its
// sign has to be the same.
#pragma once

#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

// `factor` is rstd gamma.
__device__ __forceinline__ float normalised(float x, float mean, float factor, float beta) {
  return __fmaf_rn(x - mean, factor, beta);
}

// Whether such a number is positive once it is rounded to T: above half of T's smallest.
template <class T>
__device__ __forceinline__ bool is_positive(float normal) {
  constexpr float kHalfOfSmallest = std::is_same_v<T, __half>          ? 0x1p-25F
                                    : std::is_same_v<T, __nv_bfloat16> ? 0x1p-134F
                                                                       : 0.0F;
  return normal > kHalfOfSmallest;
}

}  // namespace gpunn::cuda_tiled
