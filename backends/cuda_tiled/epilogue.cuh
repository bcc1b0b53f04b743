// The epilogue of matrix products and convolutions: the thread that stores a finished sum adds its bias and applies
// ReLU.
#pragma once

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

struct Epilogue {
  const float* bias = nullptr;  // a number a column of a product, or a channel of a convolution; null: none
  bool relu = false;
};

// ReLU. fmaxf would drop a NaN.
__device__ __forceinline__ float rectified(float sum, bool relu) { return relu && sum < 0.0F ? 0.0F : sum; }

__device__ __forceinline__ float finish(const Epilogue& epilogue, float sum, float bias) {
  return rectified(sum + bias, epilogue.relu);
}

// The same after adding the bias at this index, if there is a bias.
template <class Index>
__device__ __forceinline__ float finish_at(const Epilogue& epilogue, float sum, Index index) {
  if (epilogue.bias != nullptr) sum += epilogue.bias[index];
  return rectified(sum, epilogue.relu);
}

}  // namespace gpunn::cuda_tiled
