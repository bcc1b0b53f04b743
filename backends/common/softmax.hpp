// SOFTMAX, LOG_SOFTMAX and their gradients, over the last dimension.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

struct SoftmaxRows {
  int64_t rows = 0;
  int64_t columns = 0;  // at least 1
};

inline SoftmaxRows softmax_of(const OpDesc& desc) {
  return {.rows = desc.output(0).dim[0], .columns = desc.output(0).dim[1]};
}

inline SoftmaxRows softmax_backward_of(const OpDesc& desc) { return softmax_of(desc); }

}  // namespace gpunn::backends
