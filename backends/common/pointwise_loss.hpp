// BCE_LOGITS_LOSS, HUBER_LOSS and their backwards.
#pragma once

#include "common/loss.hpp"
#include "common/requirements.hpp"

namespace gpunn::backends {

struct Huber {
  LossRows shape;
  float delta = 1.0F;  // above 0
};

LossRows bce_of(const OpDesc& desc);
LossRows bce_backward_of(const OpDesc& desc);
Huber huber_of(const OpDesc& desc);
Huber huber_backward_of(const OpDesc& desc);

}  // namespace gpunn::backends
