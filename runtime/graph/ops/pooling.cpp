// MAX_POOL2D, AVG_POOL2D and their backwards.
#include <gpunn/ops.h>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

Shape output_shape(const gpunn_pool2d_attrs& a, const Shape& x) {
  Shape y{x[0], x[1], 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    require(a.window[i] > 0 && a.stride[i] > 0,
            "window " + pair_text(a.window) + " and stride " + pair_text(a.stride) + " must be positive");
    require(a.pad[i] >= 0 && 2 * int64_t{a.pad[i]} <= a.window[i],
            "padding " + pair_text(a.pad) + " must be between 0 and half the window " + pair_text(a.window));
    const int64_t padded = x[2 + i] + 2 * int64_t{a.pad[i]};
    require(x[2 + i] > 0 && padded >= a.window[i],
            "window " + pair_text(a.window) + " is larger than the padded input " + to_string(x));
    y[2 + i] = (padded - a.window[i]) / a.stride[i] + 1;
  }
  return y;
}

Types infer_pool(const Attributes& attrs, Inputs in) {
  require_f32(in[0], 4, "x");
  return {{DType::f32, output_shape(attrs.as<gpunn_pool2d_attrs>(), in[0].shape)}};
}

Types infer_max_pool_backward(const Attributes& attrs, Inputs in) {
  require_f32(in[1], 4, "x");
  require_same(in[0], in[2], "dy", "y");
  const Shape y = output_shape(attrs.as<gpunn_pool2d_attrs>(), in[1].shape);
  require(in[2].shape == y, "y must be " + to_string(y) + ", is " + to_string(in[2].shape));
  return {in[1]};
}

void max_pool_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_MAX_POOL2D_BACKWARD, c.node().attrs, {c.output_gradient(), c.input(0), c.output(0)}));
}

Types infer_avg_pool_backward(const Attributes& attrs, Inputs in) {
  require_f32(in[0], 4, "dy");
  const auto a = attrs.as<gpunn_pool2d_attrs>();
  const Shape x{in[0].shape[0], in[0].shape[1], a.input_size[0], a.input_size[1]};
  const Shape dy = output_shape(a, x);
  require(dy == in[0].shape, "dy must be " + to_string(dy) + ", is " + to_string(in[0].shape));
  return {{DType::f32, x}};
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
  std::string text = "window " + pair_text(a.window) + ", stride " + pair_text(a.stride);
  if (a.pad[0] != 0 || a.pad[1] != 0) text += ", pad " + pair_text(a.pad);
  if (a.count_padding != 0) text += ", padding counted";
  if (a.input_size[0] != 0) text += ", input " + pair_text(a.input_size);
  return text;
}

}  // namespace

std::vector<OpInfo> pooling_ops() {
  return {
      {.id = GPUNN_OP_MAX_POOL2D,
       .name = "MAX_POOL2D",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_pool,
       .gradient = max_pool_gradient,
       .flops = window_flops,
       .describe = describe_pool},
      {.id = GPUNN_OP_MAX_POOL2D_BACKWARD,
       .name = "MAX_POOL2D_BACKWARD",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_max_pool_backward,
       .describe = describe_pool},
      {.id = GPUNN_OP_AVG_POOL2D,
       .name = "AVG_POOL2D",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_pool,
       .gradient = avg_pool_gradient,
       .flops = window_flops,
       .describe = describe_pool},
      {.id = GPUNN_OP_AVG_POOL2D_BACKWARD,
       .name = "AVG_POOL2D_BACKWARD",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_avg_pool_backward,
       .flops = backward_window_flops,
       .describe = describe_pool},
  };
}

}  // namespace gpunn::graph
