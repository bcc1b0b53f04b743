// CLIP_NORM and L1_GRADIENT: what is done to gradients, or weights, beside the optimizer's update.
#include <gpunn/ops.h>

#include <sstream>

#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

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
      {.id = GPUNN_OP_CLIP_NORM, .describe = describe_clip_norm},
      {.id = GPUNN_OP_L1_GRADIENT, .flops = l1_flops, .describe = describe_l1_gradient},
  };
}

}  // namespace gpunn::graph
