#include <gpunn/ops.h>

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

ValueId conv2d(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_image(x);
  const int64_t filters = c.arguments.integer("filters"), groups = c.arguments.integer("groups");
  require_channels_in_multiple(x, groups, "groups");
  const Pair kernel = c.arguments.pair("kernel"), dilation = c.arguments.pair("dilation");
  const Pair reach = {dilation[0] * (kernel[0] - 1) + 1, dilation[1] * (kernel[1] - 1) + 1};
  const Pair pad = c.arguments.is_same("padding") ? Pair{reach[0] / 2, reach[1] / 2} : c.arguments.pair("padding");
  const Pair stride = c.arguments.pair("stride");
  const Pair size = slide(x, reach, stride, pad, "a kernel");
  require_sane_size({filters, size[0], size[1]});

  const int64_t fan_in = x[1] / groups * kernel[0] * kernel[1];
  const ValueId w =
      c.parameter(weight(c, {filters, x[1] / groups, kernel[0], kernel[1]}, fan_in, filters * kernel[0] * kernel[1]));
  const Attributes attrs = Attributes::of(attributes(stride, pad, dilation, groups));
  const ValueId y = c.graph.add1(GPUNN_OP_CONV2D, c.layer.name, attrs, {c.inputs[0], w});
  return add_bias_and_activation(c, y, filters, fan_in);
}

ValueId conv2d_transpose(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_image(x);
  const int64_t filters = c.arguments.integer("filters"), groups = c.arguments.integer("groups");
  require_channels_in_multiple(x, groups, "groups");
  const Pair kernel = c.arguments.pair("kernel"), dilation = c.arguments.pair("dilation");
  const Pair stride = c.arguments.pair("stride"), pad = c.arguments.pair("padding");
  const Pair more = c.arguments.pair("output_padding");
  Pair size{};
  for (std::size_t i = 0; i < 2; ++i) {
    size[i] = (x[2 + i] - 1) * stride[i] - 2 * pad[i] + dilation[i] * (kernel[i] - 1) + 1 + more[i];
    if (size[i] < 1) fail("padding of " + by(pad) + " leaves nothing of an input of " + to_string(x));
  }
  require_sane_size({filters, size[0], size[1]});

  // Both as PyTorch counts them, by the weight's first two dimensions.
  const int64_t fan_in = filters / groups * kernel[0] * kernel[1];
  const ValueId w =
      c.parameter(weight(c, {x[1], filters / groups, kernel[0], kernel[1]}, fan_in, x[1] * kernel[0] * kernel[1]));
  gpunn_conv2d_attrs attrs = attributes(stride, pad, dilation, groups);
  copy(size, attrs.input_size);
  copy(kernel, attrs.filter_size);
  const ValueId y = c.graph.add1(GPUNN_OP_CONV2D_BACKWARD_DATA, c.layer.name, Attributes::of(attrs), {c.inputs[0], w});
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
