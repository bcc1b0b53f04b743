// LAYER_NORM and its backward.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// x[rows, columns].
struct LayerNorm {
  int64_t rows = 0;
  int64_t columns = 0;
  float epsilon = 0;

  constexpr int64_t elements() const { return rows * columns; }
};

LayerNorm layer_norm_of(const OpDesc& desc);
LayerNorm layer_norm_backward_of(const OpDesc& desc);

}  // namespace gpunn::backends
