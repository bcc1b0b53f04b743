#include "common/bias.hpp"

#include "common/activation.hpp"

namespace gpunn::backends {
namespace {

Bias bias_shape(const gpunn_tensor& x, const gpunn_tensor& bias) {
  require_packed(x, GPUNN_F32, "the data");
  require_packed(bias, GPUNN_F32, "the bias");
  require(x.rank >= 2, "the data must be [N,C,...]");
  require_shape(bias, {x.dim[1]}, "the bias");
  Bias shape;
  shape.rows = x.dim[0];
  shape.channels = x.dim[1];
  for (int32_t i = 2; i < x.rank; ++i) shape.size *= x.dim[i];
  return shape;
}

}  // namespace

Bias bias_add_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  require_packed(desc.output(0), GPUNN_F32, "y");
  require_same_shape(desc.input(0), desc.output(0), "x and y");
  return bias_shape(desc.input(0), desc.input(1));
}

Bias bias_backward_of(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 1);
  return bias_shape(desc.input(0), desc.output(0));
}

Bias bias_activation_backward_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 2);
  const auto attrs = require_attrs<gpunn_bias_activation_backward_attrs>(desc);
  for (const gpunn_tensor* tensor : {&desc.input(1), &desc.output(0)}) {
    require_packed(*tensor, GPUNN_F32, "y and dx");
    require_same_shape(*tensor, desc.input(0), "dy, y and dx");
  }
  Bias shape = bias_shape(desc.input(0), desc.output(1));
  shape.relu = is_relu(attrs.activation);
  return shape;
}

}  // namespace gpunn::backends
