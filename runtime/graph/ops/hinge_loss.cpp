// HINGE_LOSS and its backward.
#include <gpunn/ops.h>

#include <cmath>
#include <sstream>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

Types infer_hinge(const Attributes& attrs, Inputs in) {
  const auto a = attrs.as<gpunn_hinge_attrs>();
  require(std::isfinite(a.margin), "margin must be finite");
  require(a.power == 1 || a.power == 2, "power " + std::to_string(a.power) + " must be 1 or 2");
  require_f32(in[0], 2, "x");
  require(in[0].shape[1] > 0, "x must have at least one class, is " + to_string(in[0]));
  require_labels(in[1], in[0].shape[0]);
  return {{DType::f32, {in[0].shape[0]}}};
}

Types infer_hinge_backward(const Attributes& attrs, Inputs in) {
  const TensorType loss = infer_hinge(attrs, in.subspan(1)).front();
  require_same(in[0], loss, "dloss", "the loss");
  return {in[1]};
}

void hinge_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_HINGE_LOSS_BACKWARD, c.node().attrs, {c.output_gradient(), c.input(0), c.input(1)}));
}

double hinge_loss_flops(const OpSignature& s) { return 3.0 * static_cast<double>(s.inputs[0].elements()); }
double hinge_loss_backward_flops(const OpSignature& s) { return 3.0 * static_cast<double>(s.inputs[1].elements()); }

std::string describe_hinge(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_hinge_attrs>();
  std::ostringstream text;
  text << "margin " << a.margin << ", power " << a.power;
  return text.str();
}

}  // namespace

std::vector<OpInfo> hinge_loss_ops() {
  return {
      {.id = GPUNN_OP_HINGE_LOSS,
       .name = "HINGE_LOSS",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_hinge,
       .gradient = hinge_gradient,
       .flops = hinge_loss_flops,
       .describe = describe_hinge},
      {.id = GPUNN_OP_HINGE_LOSS_BACKWARD,
       .name = "HINGE_LOSS_BACKWARD",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_hinge_backward,
       .flops = hinge_loss_backward_flops,
       .describe = describe_hinge},
  };
}

}  // namespace gpunn::graph
