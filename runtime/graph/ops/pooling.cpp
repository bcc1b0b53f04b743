// MAX_POOL2D, AVG_POOL2D and their backwards.
#include <gpunn/ops.h>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

void max_pool_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_MAX_POOL2D_BACKWARD, c.node().attrs, {c.output_gradient(), c.input(0), c.output(0)}));
}

void avg_pool_gradient(GradientContext& c) {
  auto a = c.node().attrs.as<gpunn_pool2d_attrs>();
  const Shape& x = c.graph().value(c.input(0)).type.shape;
  for (std::size_t i = 0; i < 2; ++i) a.input_size[i] = static_cast<int32_t>(x[2 + i]);
  c.set(0, c.add(GPUNN_OP_AVG_POOL2D_BACKWARD, Attributes::of(a), {c.output_gradient()}));
}

double window_flops(const OpSignature& s) {
  const auto a = s.attrs.as<gpunn_pool2d_attrs>();
  return static_cast<double>(s.outputs[0].elements()) * a.window[0] * a.window[1];
}

double backward_window_flops(const OpSignature& s) {
  const auto a = s.attrs.as<gpunn_pool2d_attrs>();
  return static_cast<double>(s.inputs[0].elements()) * a.window[0] * a.window[1];
}

std::string describe_pool(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_pool2d_attrs>();
  std::string text = "window " + ops::pair_text(a.window) + ", stride " + ops::pair_text(a.stride);
  if (a.pad[0] != 0 || a.pad[1] != 0) text += ", pad " + ops::pair_text(a.pad);
  if (a.count_padding != 0) text += ", padding counted";
  if (a.input_size[0] != 0) text += ", input " + ops::pair_text(a.input_size);
  return text;
}

}  // namespace

std::vector<OpInfo> pooling_ops() {
  return {
      {.id = GPUNN_OP_MAX_POOL2D, .gradient = max_pool_gradient, .flops = window_flops, .describe = describe_pool},
      {.id = GPUNN_OP_MAX_POOL2D_BACKWARD, .describe = describe_pool},
      {.id = GPUNN_OP_AVG_POOL2D, .gradient = avg_pool_gradient, .flops = window_flops, .describe = describe_pool},
      {.id = GPUNN_OP_AVG_POOL2D_BACKWARD, .flops = backward_window_flops, .describe = describe_pool},
  };
}

}  // namespace gpunn::graph
