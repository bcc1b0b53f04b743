// Numbers of float, __nv_bfloat16 or __half, moved several at a time and computed with as float.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace gpunn::cuda_tiled {

// What one access moves.
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
