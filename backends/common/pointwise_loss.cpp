#include "common/pointwise_loss.hpp"

#include <cmath>

namespace gpunn::backends {
namespace {

float delta_of(const OpDesc& desc) {
  const float delta = require_attrs<gpunn_huber_attrs>(desc).delta;
  require(std::isfinite(delta) && delta > 0.0F, "delta must be above 0");
  return delta;
}

}  // namespace

// Their tensors are those of a mean squared error.
LossRows bce_of(const OpDesc& desc) { return mse_of(desc); }
LossRows bce_backward_of(const OpDesc& desc) { return mse_backward_of(desc); }
Huber huber_of(const OpDesc& desc) { return {.shape = mse_of(desc), .delta = delta_of(desc)}; }
Huber huber_backward_of(const OpDesc& desc) { return {.shape = mse_backward_of(desc), .delta = delta_of(desc)}; }

}  // namespace gpunn::backends
