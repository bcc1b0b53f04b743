// How a composite op ends: the thread that holds a finished sum adds the bias, and what else is to be added, and
// applies the activation before it stores. That costs next to nothing, while ops of their own would read and write the
// tensor twice more each.
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
