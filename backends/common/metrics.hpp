// METRICS_ACCUMULATE.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

struct Metrics {
  int64_t rows = 0;
  int64_t classes = 0;  // 0: loss alone
};

inline Metrics metrics_of(const OpDesc& desc) {
  Metrics plan{.rows = desc.input(0).dim[0]};
  if (desc.inputs() == 5) plan.classes = desc.input(3).dim[1];
  return plan;
}

}  // namespace gpunn::backends
