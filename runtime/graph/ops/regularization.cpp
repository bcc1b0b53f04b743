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

// A norm that is not finite leaves x as it is: its difference from itself is no 0.
std::vector<ValueId> clip_norm(Composition& c) {
  const auto a = c.attrs<gpunn_clip_norm_attrs>();
  const ValueId norm = c.in(1), one = c.constant(1);
  const ValueId share = c.div(c.constant(a.max_norm), c.add(norm, c.constant(a.epsilon)));
  const ValueId factor = a.rescale != 0 ? share : c.minimum(one, share);
  return {c.mul(c.in(0), c.select(c.equal(c.sub(norm, norm), c.constant(0)), factor, one))};
}

std::vector<ValueId> l1_gradient(Composition& c) {
  const auto a = c.attrs<gpunn_l1_attrs>();
  return {c.add(c.in(0), c.of_first(c.scaled(c.sign(c.in(1)), a.weight), a.decayed))};
}

}  // namespace

std::vector<OpInfo> regularization_ops() {
  return {
      {.id = GPUNN_OP_CLIP_NORM, .decompose = clip_norm, .describe = describe_clip_norm},
      {.id = GPUNN_OP_L1_GRADIENT, .decompose = l1_gradient, .flops = l1_flops, .describe = describe_l1_gradient},
  };
}

}  // namespace gpunn::graph
