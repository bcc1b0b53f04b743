// BATCH_NORM, BATCH_NORM_BACKWARD and BATCH_NORM_INFERENCE.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// x[rows, channels, size]: `size` is the product of the dimensions after the channel's, 1 for [N,C].
struct BatchNorm {
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t size = 1;
  float epsilon = 0;
  float momentum = 0;
  bool counted = false;  // the last input says how many rows enter the statistics

  constexpr int64_t elements() const { return rows * channels * size; }
};

BatchNorm batch_norm_of(const OpDesc& desc);
BatchNorm batch_norm_backward_of(const OpDesc& desc);
BatchNorm batch_norm_inference_of(const OpDesc& desc);

}  // namespace gpunn::backends
