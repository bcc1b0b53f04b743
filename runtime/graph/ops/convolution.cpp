// CONV2D, its two gradients and the composite with bias and activation.
#include <gpunn/ops.h>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"
#include "graph/ops/fused_activation.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

void require_geometry(const gpunn_conv2d_attrs& a) {
  for (std::size_t i = 0; i < 2; ++i) {
    require(a.stride[i] > 0, "stride " + pair_text(a.stride) + " must be positive");
    require(a.dilation[i] > 0, "dilation " + pair_text(a.dilation) + " must be positive");
    require(a.pad[i] >= 0, "padding " + pair_text(a.pad) + " must not be negative");
  }
  require(a.groups > 0, "groups " + std::to_string(a.groups) + " must be positive");
}

// The output's rows (axis 0) or columns (axis 1).
int64_t output_size(const gpunn_conv2d_attrs& a, std::size_t axis, int64_t input, int64_t filter) {
  const int64_t reach = a.dilation[axis] * (filter - 1) + 1;
  const int64_t padded = input + 2 * int64_t{a.pad[axis]};
  require(filter > 0 && padded >= reach, "a filter of reach " + std::to_string(reach) +
                                             " is larger than the padded input of " + std::to_string(padded) +
                                             (axis == 0 ? " rows" : " columns"));
  return (padded - reach) / a.stride[axis] + 1;
}

Shape output_shape(const gpunn_conv2d_attrs& a, const Shape& x, const Shape& w) {
  require_geometry(a);
  require(w[1] * a.groups == x[1], "the filter " + to_string(w) + " in " + std::to_string(a.groups) + " groups reads " +
                                       std::to_string(w[1] * a.groups) + " channels, the input " + to_string(x) +
                                       " has " + std::to_string(x[1]));
  require(w[0] % a.groups == 0,
          std::to_string(w[0]) + " filters can't be split in " + std::to_string(a.groups) + " groups");
  return {x[0], w[0], output_size(a, 0, x[2], w[2]), output_size(a, 1, x[3], w[3])};
}

Types infer_conv2d(const Attributes& attrs, Inputs in) {
  require_f32(in[0], 4, "x");
  require_f32(in[1], 4, "w");
  return {{DType::f32, output_shape(attrs.as<gpunn_conv2d_attrs>(), in[0].shape, in[1].shape)}};
}

Types infer_backward_data(const Attributes& attrs, Inputs in) {
  require_f32(in[0], 4, "dy");
  require_f32(in[1], 4, "w");
  const auto a = attrs.as<gpunn_conv2d_attrs>();
  const Shape& w = in[1].shape;
  const Shape dx{in[0].shape[0], w[1] * a.groups, a.input_size[0], a.input_size[1]};
  const Shape dy = output_shape(a, dx, w);
  require(dy == in[0].shape, "dy must be " + to_string(dy) + ", is " + to_string(in[0].shape));
  return {{DType::f32, dx}};
}

Types infer_backward_filter(const Attributes& attrs, Inputs in) {
  require_f32(in[0], 4, "dy");
  require_f32(in[1], 4, "x");
  const auto a = attrs.as<gpunn_conv2d_attrs>();
  require(a.groups > 0, "groups " + std::to_string(a.groups) + " must be positive");
  const Shape& x = in[1].shape;
  require(x[1] % a.groups == 0,
          std::to_string(x[1]) + " channels can't be split in " + std::to_string(a.groups) + " groups");
  const Shape dw{in[0].shape[1], x[1] / a.groups, a.filter_size[0], a.filter_size[1]};
  const Shape dy = output_shape(a, x, dw);
  require(dy == in[0].shape, "dy must be " + to_string(dy) + ", is " + to_string(in[0].shape));
  return {{DType::f32, dw}};
}

Types infer_conv2d_bias_activation(const Attributes& attrs, Inputs in) {
  const TensorType y = infer_conv2d(attrs, in.first(2)).front();
  require_f32(in[2], 1, "bias");
  require(in[2].shape[0] == y.shape[1],
          "bias " + to_string(in[2].shape) + " must have " + std::to_string(y.shape[1]) + " entries, one a filter");
  return {y};
}

// The node's attributes with the sizes of x and w put in, which each of the three ops may need of the others.
Attributes with_sizes(const GradientContext& c, ValueId x, ValueId w) {
  auto a = c.node().attrs.as<gpunn_conv2d_attrs>();
  const Shape& image = c.graph().value(x).type.shape;
  const Shape& filter = c.graph().value(w).type.shape;
  for (std::size_t i = 0; i < 2; ++i) {
    a.input_size[i] = static_cast<int32_t>(image[2 + i]);
    a.filter_size[i] = static_cast<int32_t>(filter[2 + i]);
  }
  return Attributes::of(a);
}

// y, x and w enter the sum of y * (x convolved by w) alike: the gradient of each op by one of them is that of the three
// ops which computes it of the other two.
void conv2d_gradient(GradientContext& c) {
  const Attributes a = with_sizes(c, c.input(0), c.input(1));
  const ValueId dy = c.output_gradient();
  if (c.wants(1)) c.set(1, c.add(GPUNN_OP_CONV2D_BACKWARD_FILTER, a, {dy, c.input(0)}));
  if (c.wants(0)) c.set(0, c.add(GPUNN_OP_CONV2D_BACKWARD_DATA, a, {dy, c.input(1)}));
}

void backward_data_gradient(GradientContext& c) {
  const ValueId x = c.output_gradient();
  const Attributes a = with_sizes(c, x, c.input(1));
  if (c.wants(1)) c.set(1, c.add(GPUNN_OP_CONV2D_BACKWARD_FILTER, a, {c.input(0), x}));
  if (c.wants(0)) c.set(0, c.add(GPUNN_OP_CONV2D, a, {x, c.input(1)}));
}

void backward_filter_gradient(GradientContext& c) {
  const ValueId w = c.output_gradient();
  const Attributes a = with_sizes(c, c.input(1), w);
  if (c.wants(1)) c.set(1, c.add(GPUNN_OP_CONV2D_BACKWARD_DATA, a, {c.input(0), w}));
  if (c.wants(0)) c.set(0, c.add(GPUNN_OP_CONV2D, a, {c.input(1), w}));
}

void decompose_conv2d_bias_activation(Graph& graph, const Node& node) {
  auto a = node.attrs.as<gpunn_conv2d_attrs>();
  const int32_t activation = a.activation;
  a.activation = GPUNN_ACTIVATION_NONE;
  const ValueId y = graph.add1(GPUNN_OP_CONV2D, node.name, Attributes::of(a), {node.inputs[0], node.inputs[1]});
  add_bias_and_activation(graph, node.name, y, node.inputs[2], activation, node.outputs[0]);
}

// dy and w (or dw) give the products: one a tap, group channel and output element.
double flops(const Shape& dy, const Shape& w) {
  return 2.0 * static_cast<double>(element_count(dy)) * static_cast<double>(w[1] * w[2] * w[3]);
}
double convolution_flops(const OpSignature& s) { return flops(s.outputs[0].shape, s.inputs[1].shape); }
double data_flops(const OpSignature& s) { return flops(s.inputs[0].shape, s.inputs[1].shape); }
double filter_flops(const OpSignature& s) { return flops(s.inputs[0].shape, s.outputs[0].shape); }

std::string describe_conv2d(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_conv2d_attrs>();
  std::string text = "stride " + pair_text(a.stride) + ", pad " + pair_text(a.pad);
  if (a.dilation[0] != 1 || a.dilation[1] != 1) text += ", dilation " + pair_text(a.dilation);
  if (a.groups != 1) text += ", groups " + std::to_string(a.groups);
  if (a.activation != GPUNN_ACTIVATION_NONE) text += ", " + activation_text(a.activation);
  return text;
}

}  // namespace

std::vector<OpInfo> convolution_ops() {
  return {
      {.id = GPUNN_OP_CONV2D,
       .name = "CONV2D",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_conv2d,
       .gradient = conv2d_gradient,
       .flops = convolution_flops,
       .describe = describe_conv2d},
      {.id = GPUNN_OP_CONV2D_BACKWARD_DATA,
       .name = "CONV2D_BACKWARD_DATA",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_backward_data,
       .gradient = backward_data_gradient,
       .flops = data_flops,
       .describe = describe_conv2d},
      {.id = GPUNN_OP_CONV2D_BACKWARD_FILTER,
       .name = "CONV2D_BACKWARD_FILTER",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_backward_filter,
       .gradient = backward_filter_gradient,
       .flops = filter_flops,
       .describe = describe_conv2d},
      {.id = GPUNN_OP_CONV2D_BIAS_ACTIVATION,
       .name = "CONV2D_BIAS_ACTIVATION",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_conv2d_bias_activation,
       .decompose = decompose_conv2d_bias_activation,
       .flops = convolution_flops,
       .describe = describe_conv2d},
  };
}

}  // namespace gpunn::graph
