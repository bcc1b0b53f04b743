// CLIP_NORM and L1_GRADIENT: what is done to gradients, or weights, beside the optimizer's update.
#include <gpunn/ops.h>

#include <cmath>
#include <sstream>

#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

Types infer_clip_norm(const Attributes& attrs, Inputs in) {
  const auto a = attrs.as<gpunn_clip_norm_attrs>();
  require_f32(in[0], 1, "x");
  require_scalar(in[1], DType::f32, "norm");
  require(std::isfinite(a.max_norm) && a.max_norm > 0, "max_norm " + std::to_string(a.max_norm) + " must be above 0");
  require(std::isfinite(a.epsilon) && a.epsilon >= 0, "epsilon " + std::to_string(a.epsilon) + " must be 0 or more");
  return {in[0]};
}

Types infer_l1_gradient(const Attributes& attrs, Inputs in) {
  const auto a = attrs.as<gpunn_l1_attrs>();
  require_f32(in[0], 1, "g");
  require_same(in[0], in[1], "g", "w");
  require(std::isfinite(a.weight), "weight must be finite");
  require(a.decayed >= 0 && a.decayed <= in[0].shape[0], "decayed " + std::to_string(a.decayed) +
                                                             " is not between 0 and the " +
                                                             std::to_string(in[0].shape[0]) + " elements of g");
  return {in[0]};
}

double l1_flops(const OpSignature& s) { return 2.0 * static_cast<double>(s.attrs.as<gpunn_l1_attrs>().decayed); }

std::string describe_clip_norm(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_clip_norm_attrs>();
  std::ostringstream text;
  text << (a.rescale != 0 ? "to " : "at most ") << a.max_norm;
  return text.str();
}

std::string describe_l1_gradient(const Attributes& attrs) {
  std::ostringstream text;
  text << "weight " << attrs.as<gpunn_l1_attrs>().weight;
  return text.str();
}

}  // namespace

std::vector<OpInfo> regularization_ops() {
  return {
      {.id = GPUNN_OP_CLIP_NORM,
       .name = "CLIP_NORM",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_clip_norm,
       .may_alias = {{0}},
       .describe = describe_clip_norm},
      {.id = GPUNN_OP_L1_GRADIENT,
       .name = "L1_GRADIENT",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_l1_gradient,
       .in_place = {0},
       .flops = l1_flops,
       .describe = describe_l1_gradient},
  };
}

}  // namespace gpunn::graph
