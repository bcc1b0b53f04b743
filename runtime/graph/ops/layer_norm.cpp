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

std::vector<ValueId> layer_norm(Composition& c) {
  const ValueId x = c.in(0), gamma = c.in(1), beta = c.in(2), mean = c.row_mean(x);
  const ValueId centred = c.sub(x, c.by_row(mean, x));
  const ValueId variance = c.row_mean(c.mul(centred, centred));
  const ValueId rstd = c.rsqrt(c.add(variance, c.constant(c.attrs<gpunn_layer_norm_attrs>().epsilon)));
  return {c.add(c.mul(c.mul(centred, c.by_row(rstd, x)), gamma), beta), mean, rstd};
}

// With h = (x - mean) rstd and g = dy gamma: dx = rstd (g - mean(g) - h mean(g h)), means by row.
std::vector<ValueId> layer_norm_backward(Composition& c) {
  const ValueId dy = c.in(0), x = c.in(1), rstd = c.by_row(c.in(4), x);
  const ValueId h = c.mul(c.sub(x, c.by_row(c.in(3), x)), rstd), g = c.mul(dy, c.in(2));
  const ValueId along = c.mul(h, c.mean(c.mul(g, h), 2));
  return {c.mul(rstd, c.sub(c.sub(g, c.mean(g, 2)), along)), c.channel_sum(c.mul(dy, h)), c.channel_sum(dy)};
}

}  // namespace

std::vector<OpInfo> layer_norm_ops() {
  return {
      {.id = GPUNN_OP_LAYER_NORM,
       .gradient = layer_norm_gradient,
       .decompose = layer_norm,
       .flops = layer_norm_flops,
       .describe = describe_layer_norm},
      {.id = GPUNN_OP_LAYER_NORM_BACKWARD, .decompose = layer_norm_backward, .flops = layer_norm_backward_flops},
  };
}

}  // namespace gpunn::graph
