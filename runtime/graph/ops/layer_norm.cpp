// LAYER_NORM and its backward.
#include <gpunn/ops.h>

#include <sstream>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

void layer_norm_gradient(GradientContext& c) {
  const std::vector<ValueId> gradients =
      c.graph().add(GPUNN_OP_LAYER_NORM_BACKWARD, c.name(), {},
                    {c.output_gradient(), c.input(0), c.input(1), c.output(1), c.output(2)});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (c.wants(i)) c.set(i, gradients[i]);
  }
}

double layer_norm_flops(const OpSignature& s) { return 8.0 * static_cast<double>(s.inputs[0].elements()); }
double layer_norm_backward_flops(const OpSignature& s) { return 13.0 * static_cast<double>(s.inputs[0].elements()); }

std::string describe_layer_norm(const Attributes& attrs) {
  std::ostringstream text;
  text << "epsilon " << attrs.as<gpunn_layer_norm_attrs>().epsilon;
  return text.str();
}

}  // namespace

std::vector<OpInfo> layer_norm_ops() {
  return {
      {.id = GPUNN_OP_LAYER_NORM,
       .gradient = layer_norm_gradient,
       .flops = layer_norm_flops,
       .describe = describe_layer_norm},
      {.id = GPUNN_OP_LAYER_NORM_BACKWARD, .flops = layer_norm_backward_flops},
  };
}

}  // namespace gpunn::graph
