// METRICS_ACCUMULATE.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

struct Metrics {
  int64_t rows = 0;
  int64_t classes = 0;  // 0: loss alone
};

Metrics metrics_of(const OpDesc& desc);

}  // namespace gpunn::backends
