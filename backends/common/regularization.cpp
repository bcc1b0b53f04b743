#include "common/regularization.hpp"

#include <cmath>

namespace gpunn::backends {

ClipNorm clip_norm_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_clip_norm_attrs>(desc);
  require(std::isfinite(attrs.max_norm) && attrs.max_norm > 0.0F, "max_norm must be above 0");
  require(std::isfinite(attrs.epsilon) && attrs.epsilon >= 0.0F, "epsilon must be 0 or more");
  require_packed(desc.input(0), GPUNN_F32, "x");
  require_packed(desc.output(0), GPUNN_F32, "y");
  require(desc.input(0).rank == 1, "x must be [n]");
  require_same_shape(desc.input(0), desc.output(0), "x and y");
  require_scalar(desc.input(1), GPUNN_F32, "norm");
  return {.attrs = attrs, .n = desc.input(0).dim[0]};
}

L1Gradient l1_gradient_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_l1_attrs>(desc);
  require(std::isfinite(attrs.weight), "weight must be finite");
  require_packed(desc.input(0), GPUNN_F32, "g");
  require_packed(desc.input(1), GPUNN_F32, "w");
  require_packed(desc.output(0), GPUNN_F32, "the output");
  require(desc.input(0).rank == 1, "g must be [n]");
  require_same_shape(desc.input(0), desc.input(1), "g and w");
  require_same_shape(desc.input(0), desc.output(0), "g and the output");
  require(attrs.decayed >= 0 && attrs.decayed <= desc.input(0).dim[0], "decayed must be 0 to n");
  return {.weight = attrs.weight, .decayed = attrs.decayed};
}

}  // namespace gpunn::backends
