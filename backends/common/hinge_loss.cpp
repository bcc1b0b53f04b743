#include "common/hinge_loss.hpp"

#include <cmath>

namespace gpunn::backends {
namespace {

Hinge with_attributes(const OpDesc& desc, const LossRows& shape) {
  const auto attrs = require_attrs<gpunn_hinge_attrs>(desc);
  require(std::isfinite(attrs.margin), "margin must be finite");
  require(attrs.power == 1 || attrs.power == 2, "power must be 1 or 2");
  return {.shape = shape, .margin = attrs.margin, .power = attrs.power};
}

}  // namespace

Hinge hinge_of(const OpDesc& desc) { return with_attributes(desc, nll_of(desc)); }

// The tensors are those of a cross-entropy's backward, with x for the logarithms.
Hinge hinge_backward_of(const OpDesc& desc) { return with_attributes(desc, cross_entropy_backward_of(desc)); }

}  // namespace gpunn::backends
