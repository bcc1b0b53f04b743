#include <gpunn/ops.h>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::ValueId;

gpunn_conv2d_attrs attributes(const Pair& stride, const Pair& pad, const Pair& dilation, int64_t groups) {
  gpunn_conv2d_attrs attrs{};
  copy(stride, attrs.stride);
  copy(pad, attrs.pad);
  copy(dilation, attrs.dilation);
  attrs.groups = static_cast<int32_t>(groups);
  return attrs;
}

// Zeros that keep the size at stride 1; the odd one is below and on the right, as in PyTorch.
Margins same(const Pair& reach) { return {(reach[0] - 1) / 2, reach[0] / 2, (reach[1] - 1) / 2, reach[1] / 2}; }

ValueId conv2d(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_image(x);
  const int64_t filters = c.arguments.integer("filters"), groups = c.arguments.integer("groups");
  require_channels_in_multiple(x, groups, "groups");
  const Pair kernel = c.arguments.pair("kernel"), dilation = c.arguments.pair("dilation");
  const Pair reach = {dilation[0] * (kernel[0] - 1) + 1, dilation[1] * (kernel[1] - 1) + 1};
  const Margins padding = c.arguments.is_same("padding") ? same(reach) : c.arguments.margins("padding");
  const Pair stride = c.arguments.pair("stride");
  const Pair size = slide(x, reach, stride, padding, "a kernel");
  require_sane_size({filters, size[0], size[1]});

  const int64_t fan_in = x[1] / groups * kernel[0] * kernel[1];
  const ValueId w = weight_tensor(
      c, weight(c, {filters, x[1] / groups, kernel[0], kernel[1]}, fan_in, filters * kernel[0] * kernel[1]));
  const bool by_op = is_symmetric(padding);
  const ValueId image = by_op ? c.inputs[0] : padded(c, c.inputs[0], padding);
  const Pair pad = by_op ? Pair{padding[0], padding[2]} : Pair{0, 0};
  const Attributes attrs = Attributes::of(attributes(stride, pad, dilation, groups));
  const ValueId y = c.graph.add1(GPUNN_OP_CONV2D, c.layer.name, attrs, {image, w});
  return add_bias_and_activation(c, y, filters, fan_in);
}

ValueId conv2d_transpose(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_image(x);
  const int64_t filters = c.arguments.integer("filters"), groups = c.arguments.integer("groups");
  require_channels_in_multiple(x, groups, "groups");
  const Pair kernel = c.arguments.pair("kernel"), dilation = c.arguments.pair("dilation");
  const Pair stride = c.arguments.pair("stride");
  const Margins padding = c.arguments.margins("padding");
  const bool by_op = is_symmetric(padding);
  const Pair more = c.arguments.pair("output_padding");
  Pair whole{}, size{};
  for (std::size_t i = 0; i < 2; ++i) {
    whole[i] = (x[2 + i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 + more[i];
    size[i] = whole[i] - padding[2 * i] - padding[2 * i + 1];
    if (size[i] < 1) fail("padding of " + by(padding) + " leaves nothing of an input of " + to_string(x));
  }
  require_sane_size({filters, whole[0], whole[1]});

  // Both as PyTorch counts them, by the weight's first two dimensions.
  const int64_t fan_in = filters / groups * kernel[0] * kernel[1];
  const ValueId w =
      c.parameter(weight(c, {x[1], filters / groups, kernel[0], kernel[1]}, fan_in, x[1] * kernel[0] * kernel[1]));
  const Pair pad = by_op ? Pair{padding[0], padding[2]} : Pair{0, 0};
  gpunn_conv2d_attrs attrs = attributes(stride, pad, dilation, groups);
  copy(by_op ? size : whole, attrs.input_size);
  copy(kernel, attrs.filter_size);
  ValueId y = c.graph.add1(GPUNN_OP_CONV2D_BACKWARD_DATA, c.layer.name, Attributes::of(attrs), {c.inputs[0], w});
  if (!by_op) {
    graph::Expressions e(c.graph, c.layer.name);
    y = e.slice(e.slice(y, 2, padding[0], size[0]), 3, padding[2], size[1]);
  }
  return add_bias_and_activation(c, y, filters, fan_in);
}

}  // namespace

LayerFunctions convolution_layers() {
  return {
      {"conv2d", conv2d},
      {"conv2d_transpose", conv2d_transpose},
  };
}

}  // namespace gpunn::nn
