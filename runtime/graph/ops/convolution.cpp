// CONV2D, its two gradients and the composite with bias and activation.
#include <gpunn/ops.h>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"
#include "graph/ops/fused_activation.hpp"

namespace gpunn::graph {

namespace {

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

std::vector<ValueId> conv2d_bias_activation(Composition& c) {
  auto a = c.attrs<gpunn_conv2d_attrs>();
  const int32_t activation = a.activation;
  a.activation = GPUNN_ACTIVATION_NONE;
  const ValueId y = c.op(GPUNN_OP_CONV2D, {c.in(0), c.in(1)}, Attributes::of(a));
  return {bias_and_activation(c, y, c.in(2), activation)};
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
  std::string text = "stride " + ops::pair_text(a.stride) + ", pad " + ops::pair_text(a.pad);
  if (a.dilation[0] != 1 || a.dilation[1] != 1) text += ", dilation " + ops::pair_text(a.dilation);
  if (a.groups != 1) text += ", groups " + std::to_string(a.groups);
  if (a.activation != GPUNN_ACTIVATION_NONE) text += ", " + activation_text(a.activation);
  return text;
}

}  // namespace

std::vector<OpInfo> convolution_ops() {
  return {
      {.id = GPUNN_OP_CONV2D, .gradient = conv2d_gradient, .flops = convolution_flops, .describe = describe_conv2d},
      {.id = GPUNN_OP_CONV2D_BACKWARD_DATA,
       .gradient = backward_data_gradient,
       .flops = data_flops,
       .describe = describe_conv2d},
      {.id = GPUNN_OP_CONV2D_BACKWARD_FILTER,
       .gradient = backward_filter_gradient,
       .flops = filter_flops,
       .describe = describe_conv2d},
      {.id = GPUNN_OP_CONV2D_BIAS_ACTIVATION,
       .decompose = conv2d_bias_activation,
       .composite = true,
       .flops = convolution_flops,
       .describe = describe_conv2d},
  };
}

}  // namespace gpunn::graph
