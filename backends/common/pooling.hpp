// MAX_POOL2D, AVG_POOL2D and their backwards.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// One axis: window o covers the inputs o * stride - pad to o * stride - pad + window - 1, as far as the image has them,
// which is at least one.
struct PoolAxis {
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t window = 1;
  int64_t stride = 1;
  int64_t pad = 0;
};

struct Pool {
  int64_t planes = 0;  // images times channels
  PoolAxis rows;
  PoolAxis columns;
  bool count_padding = false;  // of AVG_POOL2D: a mean is over the whole window, padding being 0

  constexpr int64_t input_size() const { return rows.inputs * columns.inputs; }
  constexpr int64_t output_size() const { return rows.outputs * columns.outputs; }
};

Pool max_pool_of(const OpDesc& desc);
Pool max_pool_backward_of(const OpDesc& desc);
Pool avg_pool_of(const OpDesc& desc);
Pool avg_pool_backward_of(const OpDesc& desc);

}  // namespace gpunn::backends
