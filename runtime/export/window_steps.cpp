#include <gpunn/ops.h>

#include "export/onnx_builder.hpp"

namespace gpunn::interchange {

namespace {

using Numbers = std::vector<int64_t>;

Numbers pair(const int32_t (&from)[2]) { return {from[0], from[1]}; }

Numbers pads(const int32_t (&own)[2], const ImagePadding& more) {
  return {own[0] + more.top, own[1] + more.left, own[0] + more.bottom, own[1] + more.right};
}

std::string convolution(OnnxBuilder& b, const OnnxStep& step) {
  const auto attrs = step.node->attrs.as<gpunn_conv2d_attrs>();
  const Shape& w = b.graph().value(step.inputs[1]).type.shape;
  return b.add(step.node->name, "Conv", b.tensors(step.inputs),
               {{"dilations", pair(attrs.dilation)},
                {"group", int64_t{attrs.groups}},
                {"kernel_shape", Numbers{w[2], w[3]}},
                {"pads", pads(attrs.pad, step.padding)},
                {"strides", pair(attrs.stride)}});
}

std::string transposed_convolution(OnnxBuilder& b, const OnnxStep& step) {
  const auto attrs = step.node->attrs.as<gpunn_conv2d_attrs>();
  const Shape &y = b.graph().value(step.inputs[0]).type.shape, &w = b.graph().value(step.inputs[1]).type.shape;
  Numbers more;
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t least = (y[2 + i] - 1) * attrs.stride[i] + attrs.dilation[i] * (w[2 + i] - 1) + 1 - 2 * attrs.pad[i];
    more.push_back(attrs.input_size[i] - least);
  }
  return b.add(step.node->name, "ConvTranspose", b.tensors(step.inputs),
               {{"dilations", pair(attrs.dilation)},
                {"group", int64_t{attrs.groups}},
                {"kernel_shape", Numbers{w[2], w[3]}},
                {"output_padding", more},
                {"pads", pads(attrs.pad, {})},
                {"strides", pair(attrs.stride)}});
}

std::string pooling(OnnxBuilder& b, const OnnxStep& step) {
  const bool maximum = step.node->op == GPUNN_OP_MAX_POOL2D;
  const auto attrs = step.node->attrs.as<gpunn_pool2d_attrs>();
  const Shape& x = b.graph().value(step.inputs[0]).type.shape;
  const BatchShape y = b.shape(step.outputs.front());
  const Numbers around = pads(attrs.pad, step.padding);
  const bool covers = attrs.window[0] == x[2] && attrs.window[1] == x[3] && around == Numbers(4, 0);
  if (covers && !y[2].depends_on_image() && !y[3].depends_on_image()) {
    return b.add(step.node->name, maximum ? "GlobalMaxPool" : "GlobalAveragePool", b.tensors(step.inputs));
  }
  std::vector<OnnxAttribute> attributes = {
      {"kernel_shape", pair(attrs.window)}, {"pads", around}, {"strides", pair(attrs.stride)}};
  if (!maximum) attributes.push_back({"count_include_pad", int64_t{step.count_padding ? 1 : 0}});
  return b.add(step.node->name, maximum ? "MaxPool" : "AveragePool", b.tensors(step.inputs), std::move(attributes));
}

std::string upsampling(OnnxBuilder& b, const OnnxStep& step) {
  const std::string& layer = step.node->name;
  const auto attrs = step.node->attrs.as<gpunn_upsample2d_attrs>();
  const bool bilinear = attrs.mode == GPUNN_UPSAMPLE_BILINEAR;
  const std::string scales =
      b.floats(layer, {1, 1, static_cast<float>(attrs.factor[0]), static_cast<float>(attrs.factor[1])}, {4});
  std::vector<OnnxAttribute> attributes = {
      {"coordinate_transformation_mode", std::string(bilinear ? "half_pixel" : "asymmetric")},
      {"mode", std::string(bilinear ? "linear" : "nearest")}};
  if (!bilinear) attributes.push_back({"nearest_mode", std::string("floor")});
  return b.add(layer, "Resize", {b.tensor(step.inputs[0]), "", scales}, std::move(attributes));
}

}  // namespace

bool add_window_step(OnnxBuilder& b, const OnnxStep& step) {
  std::string name;
  switch (step.node->op) {
    case GPUNN_OP_CONV2D:
      name = convolution(b, step);
      break;
    case GPUNN_OP_CONV2D_BACKWARD_DATA:
      name = transposed_convolution(b, step);
      break;
    case GPUNN_OP_MAX_POOL2D:
    case GPUNN_OP_AVG_POOL2D:
      name = pooling(b, step);
      break;
    case GPUNN_OP_UPSAMPLE2D:
      name = upsampling(b, step);
      break;
    default:
      return false;
  }
  b.define(step.outputs.front(), name);
  return true;
}

}  // namespace gpunn::interchange
