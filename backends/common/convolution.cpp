#include "common/convolution.hpp"

#include <algorithm>
#include <string>

#include "common/activation.hpp"

namespace gpunn::backends {
namespace {

constexpr int64_t kLargestExtent = 1 << 20;

// Where x, w and y (or their gradients) stand in an op's description.
struct Roles {
  const gpunn_tensor& x;
  const gpunn_tensor& w;
  const gpunn_tensor& y;
};

void require_image_tensor(const gpunn_tensor& tensor, const char* name) {
  require_packed(tensor, GPUNN_F32, name);
  if (tensor.rank != 4) throw Refusal(std::string(name) + " must have rank 4");
  for (int i = 0; i < 4; ++i) {
    if (tensor.dim[i] < 1) throw Refusal(std::string(name) + " is empty");
    if (i > 1 && tensor.dim[i] > kLargestExtent) {
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
  require(made.stride >= 1 && made.dilation >= 1 && made.pad >= 0,
          "stride and dilation must be positive, pad not negative");
  require(made.stride <= kLargestExtent && made.dilation <= kLargestExtent && made.pad <= kLargestExtent,
          "stride, dilation or pad is out of range");
  const int64_t room = made.inputs + 2 * made.pad - made.dilation * (made.taps - 1) - 1;
  require(room >= 0, "the filter is larger than the padded image");
  require(room / made.stride + 1 == made.outputs, "the sizes of x, w and y don't fit stride, pad and dilation");
  return made;
}

ConvolutionShape convolution_shape(const Roles& roles, const gpunn_conv2d_attrs& attrs) {
  require_image_tensor(roles.x, "x");
  require_image_tensor(roles.w, "w");
  require_image_tensor(roles.y, "y");
  const int64_t inputs = roles.x.dim[1];
  const int64_t outputs = roles.w.dim[0];
  require(attrs.groups >= 1 && inputs % attrs.groups == 0 && outputs % attrs.groups == 0,
          "groups must divide the channels of x and y");
  require(roles.w.dim[1] == inputs / attrs.groups, "w has another number of input channels than x");
  require(roles.y.dim[0] == roles.x.dim[0], "x and y have different batches");
  require(roles.y.dim[1] == outputs, "y has another number of channels than w");
  return {.batch = roles.x.dim[0],
          .groups = attrs.groups,
          .group_inputs = inputs / attrs.groups,
          .group_outputs = outputs / attrs.groups,
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
  require_tensors(desc, 2, 2, 1);
  return convolution_shape({desc.input(0), desc.input(1), desc.output(0)}, require_attrs<gpunn_conv2d_attrs>(desc));
}

ConvolutionBiasActivation convolution_bias_activation_of(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 1);
  const auto attrs = require_attrs<gpunn_conv2d_attrs>(desc);
  const bool relu = is_relu(attrs.activation);
  const ConvolutionShape shape = convolution_shape({desc.input(0), desc.input(1), desc.output(0)}, attrs);
  require_packed(desc.input(2), GPUNN_F32, "bias");
  require_shape(desc.input(2), {desc.input(1).dim[0]}, "bias");
  return {.shape = shape, .relu = relu};
}

ConvolutionShape convolution_backward_data_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_conv2d_attrs>(desc);
  const ConvolutionShape shape = convolution_shape({desc.output(0), desc.input(1), desc.input(0)}, attrs);
  require(attrs.input_size[0] == shape.rows.inputs && attrs.input_size[1] == shape.columns.inputs,
          "dx has another size than input_size says");
  return shape;
}

ConvolutionShape convolution_backward_filter_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_conv2d_attrs>(desc);
  const ConvolutionShape shape = convolution_shape({desc.input(1), desc.output(0), desc.input(0)}, attrs);
  require(attrs.filter_size[0] == shape.rows.taps && attrs.filter_size[1] == shape.columns.taps,
          "dw has another size than filter_size says");
  return shape;
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
