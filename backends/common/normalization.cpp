#include "common/normalization.hpp"

namespace gpunn::backends {
namespace {

BatchNorm batch_norm_shape(const gpunn_tensor& x, const gpunn_tensor& y) {
  require_packed(x, GPUNN_F32, "x");
  require_packed(y, GPUNN_F32, "y and dx");
  require(x.rank >= 2, "x must be [N,C,...]");
  require_same_shape(x, y, "x and y, or dx");
  BatchNorm shape;
  shape.rows = x.dim[0];
  shape.channels = x.dim[1];
  for (int32_t i = 2; i < x.rank; ++i) shape.size *= x.dim[i];
  return shape;
}

void require_channels(const gpunn_tensor& tensor, const BatchNorm& shape, const char* name) {
  require_packed(tensor, GPUNN_F32, name);
  require_shape(tensor, {shape.channels}, name);
}

void take_attributes(const OpDesc& desc, BatchNorm& shape) {
  const auto attrs = require_attrs<gpunn_batch_norm_attrs>(desc);
  require(attrs.epsilon > 0, "epsilon must be positive");
  shape.epsilon = attrs.epsilon;
  shape.momentum = attrs.momentum;
}

void take_count(const OpDesc& desc, BatchNorm& shape) {
  if (desc.inputs() < 6) return;
  require_scalar(desc.input(5), GPUNN_I32, "count");
  shape.counted = true;
}

}  // namespace

BatchNorm batch_norm_of(const OpDesc& desc) {
  require_tensors(desc, 5, 6, 5);
  BatchNorm shape = batch_norm_shape(desc.input(0), desc.output(0));
  for (std::size_t i = 1; i < 5; ++i) {
    require_channels(desc.input(i), shape, "gamma, beta and the running statistics");
    require_channels(desc.output(i), shape, "mean, rstd and the running statistics");
  }
  take_attributes(desc, shape);
  require(shape.momentum >= 0 && shape.momentum <= 1, "momentum must be from 0 to 1");
  take_count(desc, shape);
  return shape;
}

BatchNorm batch_norm_backward_of(const OpDesc& desc) {
  require_tensors(desc, 5, 6, 3);
  BatchNorm shape = batch_norm_shape(desc.input(1), desc.output(0));
  require_packed(desc.input(0), GPUNN_F32, "dy");
  require_same_shape(desc.input(0), desc.input(1), "dy and x");
  for (std::size_t i = 2; i < 5; ++i) require_channels(desc.input(i), shape, "gamma, mean and rstd");
  for (std::size_t i = 1; i < 3; ++i) require_channels(desc.output(i), shape, "dgamma and dbeta");
  take_count(desc, shape);
  return shape;
}

BatchNorm batch_norm_inference_of(const OpDesc& desc) {
  require_tensors(desc, 5, 5, 1);
  BatchNorm shape = batch_norm_shape(desc.input(0), desc.output(0));
  for (std::size_t i = 1; i < 5; ++i) require_channels(desc.input(i), shape, "gamma, beta, mean and var");
  take_attributes(desc, shape);
  return shape;
}

}  // namespace gpunn::backends
