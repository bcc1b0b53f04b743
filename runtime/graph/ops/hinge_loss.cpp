// HINGE_LOSS and its backward.
#include <gpunn/ops.h>

#include <sstream>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

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
      {.id = GPUNN_OP_HINGE_LOSS, .gradient = hinge_gradient, .flops = hinge_loss_flops, .describe = describe_hinge},
      {.id = GPUNN_OP_HINGE_LOSS_BACKWARD, .flops = hinge_loss_backward_flops, .describe = describe_hinge},
  };
}

}  // namespace gpunn::graph
