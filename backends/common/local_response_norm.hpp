// LOCAL_RESPONSE_NORM and its backward.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// x[rows, channels, size]: `size` is the product of the dimensions after the channel's, 1 for [N,C]. The denominator of
// channel c is k + factor * the sum of x^2 over the channels c - before to c + behind, as far as there are such.
struct LocalResponse {
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t size = 1;
  int64_t before = 0;
  int64_t behind = 0;
  float factor = 0;  // alpha / size
  float beta = 0;
  float k = 1;
  uint64_t workspace_bytes = 0;  // of the backward: a float an element

  constexpr int64_t elements() const { return rows * channels * size; }
};

LocalResponse local_response_norm_of(const OpDesc& desc);
LocalResponse local_response_norm_backward_of(const OpDesc& desc);

}  // namespace gpunn::backends
