#include "common/convolution.hpp"

#include <algorithm>
#include <string>

namespace gpunn::backends {
namespace {

constexpr int64_t kLargestExtent = 1 << 20;

// Where x, w and y (or their gradients) stand in an op's description.
struct Roles {
  const gpunn_tensor& x;
  const gpunn_tensor& w;
  const gpunn_tensor& y;
};

void require_served(const gpunn_tensor& tensor, const char* name) {
  for (int i = 2; i < 4; ++i) {
    if (tensor.dim[i] > kLargestExtent) {
      throw Refusal(std::string(name) + " has more than " + std::to_string(kLargestExtent) + " rows or columns");
    }
  }
}

ConvolutionAxis axis_of(const Roles& roles, const gpunn_conv2d_attrs& attrs, int axis) {
  const ConvolutionAxis made{.inputs = roles.x.dim[2 + axis],
                             .outputs = roles.y.dim[2 + axis],
                             .taps = roles.w.dim[2 + axis],
                             .stride = attrs.stride[axis],
                             .pad = attrs.pad[axis],
                             .dilation = attrs.dilation[axis]};
  require(made.stride <= kLargestExtent && made.dilation <= kLargestExtent && made.pad <= kLargestExtent,
          "stride, dilation or pad is out of range");
  return made;
}

ConvolutionShape shape_of(const OpDesc& desc, const Roles& roles) {
  const auto attrs = desc.attrs<gpunn_conv2d_attrs>();
  require_served(roles.x, "x");
  require_served(roles.w, "w");
  require_served(roles.y, "y");
  return {.batch = roles.x.dim[0],
          .groups = attrs.groups,
          .group_inputs = roles.w.dim[1],
          .group_outputs = roles.w.dim[0] / attrs.groups,
          .rows = axis_of(roles, attrs, 0),
          .columns = axis_of(roles, attrs, 1)};
}

}  // namespace

bool has_few_channels(const ConvolutionShape& shape) {
  constexpr int64_t kMostChannels = 16;
  constexpr int64_t kMostTaps = 7;
  constexpr int64_t kMostPixels = 12 * 1024;  // of an image with its border, in all channels of a group
  const auto plain = [](const ConvolutionAxis& axis) {
    return axis.stride == 1 && axis.dilation == 1 && axis.taps <= kMostTaps;
  };
  const auto padded = [](const ConvolutionAxis& axis) { return axis.outputs + axis.taps; };
  return plain(shape.rows) && plain(shape.columns) && shape.group_inputs <= kMostChannels &&
         shape.group_outputs <= kMostChannels && shape.groups <= 1024 && shape.batch <= (1 << 20) &&
         std::max(shape.group_inputs, shape.group_outputs) * padded(shape.rows) * padded(shape.columns) <= kMostPixels;
}

ConvolutionShape convolution_of(const OpDesc& desc) {
  return shape_of(desc, {desc.input(0), desc.input(1), desc.output(0)});
}

ConvolutionBiasActivation convolution_bias_activation_of(const OpDesc& desc) {
  return {.shape = convolution_of(desc), .relu = is_relu(desc.attrs<gpunn_conv2d_attrs>().activation)};
}

ConvolutionShape convolution_backward_data_of(const OpDesc& desc) {
  return shape_of(desc, {desc.output(0), desc.input(1), desc.input(0)});
}

ConvolutionShape convolution_backward_filter_of(const OpDesc& desc) {
  return shape_of(desc, {desc.input(1), desc.output(0), desc.input(0)});
}

int64_t terms_of(ConvolutionPass pass, const ConvolutionShape& shape) {
  const int64_t taps = shape.rows.taps * shape.columns.taps;
  switch (pass) {
    case ConvolutionPass::backward_data:
      return shape.group_outputs * taps;
    case ConvolutionPass::backward_filter:
      return shape.batch * shape.rows.outputs * shape.columns.outputs;
    case ConvolutionPass::forward:
      break;
  }
  return shape.group_inputs * taps;
}

std::string text_of(ConvolutionPass pass, const ConvolutionEpilogue& epilogue) {
  std::string text = "conv2d";
  if (pass == ConvolutionPass::backward_data) text += "_backward_data";
  if (pass == ConvolutionPass::backward_filter) text += "_backward_filter";
  if (epilogue.bias) text += "_bias";
  if (epilogue.residual) text += "_add";
  if (epilogue.relu) text += "_relu";
  return text;
}

std::string text_of(const ConvolutionShape& shape) {
  const auto axis_text = [](const ConvolutionAxis& axis) {
    return std::to_string(axis.inputs) + "/" + std::to_string(axis.taps) + "s" + std::to_string(axis.stride) + "p" +
           std::to_string(axis.pad) + "d" + std::to_string(axis.dilation);
  };
  return "n=" + std::to_string(shape.batch) + " g=" + std::to_string(shape.groups) +
         " c=" + std::to_string(shape.group_inputs) + " k=" + std::to_string(shape.group_outputs) + " " +
         axis_text(shape.rows) + " " + axis_text(shape.columns);
}

}  // namespace gpunn::backends
