// SOFTMAX, LOG_SOFTMAX and their backwards, over the last dimension.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

struct SoftmaxRows {
  int64_t rows = 0;
  int64_t columns = 0;  // at least 1
};

// Forward: x and y of one shape.
SoftmaxRows softmax_of(const OpDesc& desc);

// Backward: dy, y and dx of one shape.
SoftmaxRows softmax_backward_of(const OpDesc& desc);

}  // namespace gpunn::backends
