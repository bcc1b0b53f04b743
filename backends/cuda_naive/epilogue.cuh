// The epilogue of composite ops. The thread that holds a finished sum adds the bias and, if present, the residual, and
// applies the activation before it stores the result. This costs next to nothing, while each separate op would read and
// write the tensor once more.
#pragma once

#include <cstdint>

namespace gpunn::cuda_naive {

struct Epilogue {
  const float* bias = nullptr;  // a number a channel; null for none
  bool relu = false;

  // Not fmaxf, which drops a NaN.
  __device__ float operator()(float sum, int64_t channel, float added = 0.0F) const {
    if (bias != nullptr) sum += bias[channel];
    sum += added;
    return relu && sum < 0.0F ? 0.0F : sum;
  }
};

}  // namespace gpunn::cuda_naive
