// Packs of float, __nv_bfloat16 or __half numbers: one access moves several of them, and the kernels compute in float.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace gpunn::cuda_tiled {

// The numbers that one access moves.
template <class T, int width>
struct alignas(sizeof(T) * width) Pack {
  T values[width];
};

// As a tensor of T holds it.
template <class T>
__device__ __forceinline__ float rounded_to(float value) {
  return static_cast<float>(static_cast<T>(value));
}

}  // namespace gpunn::cuda_tiled
