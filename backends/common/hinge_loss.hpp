// HINGE_LOSS and its backward.
#pragma once

#include <cstdint>

#include "common/loss.hpp"
#include "common/requirements.hpp"

namespace gpunn::backends {

struct Hinge {
  LossRows shape;
  float margin = 1.0F;  // finite
  int32_t power = 1;    // 1 or 2
};

Hinge hinge_of(const OpDesc& desc);
Hinge hinge_backward_of(const OpDesc& desc);

}  // namespace gpunn::backends
