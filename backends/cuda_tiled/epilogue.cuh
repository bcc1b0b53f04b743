// How a product or a convolution ends: the thread that stores a finished sum adds its bias and applies ReLU.
#pragma once

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

struct Epilogue {
  const float* bias = nullptr;  // a number a column of a product, or a channel of a convolution; null: none
  bool relu = false;
};

// Not fmaxf, which drops a NaN.
__device__ __forceinline__ float rectified(float sum, bool relu) { return relu && sum < 0.0F ? 0.0F : sum; }

__device__ __forceinline__ float finish(const Epilogue& epilogue, float sum, float bias) {
  return rectified(sum + bias, epilogue.relu);
}

// The same with the bias at this index, where there is a bias.
template <class Index>
__device__ __forceinline__ float finish_at(const Epilogue& epilogue, float sum, Index index) {
  if (epilogue.bias != nullptr) sum += epilogue.bias[index];
  return rectified(sum, epilogue.relu);
}

}  // namespace gpunn::cuda_tiled
