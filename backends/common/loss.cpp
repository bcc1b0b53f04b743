#include "common/loss.hpp"

namespace gpunn::backends {
namespace {

// Of x[N,...] and one number a row.
LossRows rows_of(const gpunn_tensor& x, const gpunn_tensor& loss, const char* loss_name) {
  require_packed(x, GPUNN_F32, "the data");
  require_packed(loss, GPUNN_F32, loss_name);
  require(x.rank >= 1, "the data must be [N,...]");
  require_shape(loss, {x.dim[0]}, loss_name);
  LossRows shape{.rows = x.dim[0], .columns = 1};
  for (int32_t i = 1; i < x.rank; ++i) shape.columns *= x.dim[i];
  require(shape.columns >= 1, "a row must not be empty");
  return shape;
}

LossRows classes_of(const gpunn_tensor& x, const gpunn_tensor& label, const gpunn_tensor& loss, const char* loss_name) {
  require(x.rank == 2, "the data must be [N,C]");
  require_packed(label, GPUNN_I32, "label");
  require_shape(label, {x.dim[0]}, "label");
  return rows_of(x, loss, loss_name);
}

}  // namespace

LossRows nll_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  return classes_of(desc.input(0), desc.input(1), desc.output(0), "loss");
}

LossRows nll_backward_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_classes_attrs>(desc);
  require(desc.output(0).rank == 2 && desc.output(0).dim[1] == attrs.classes, "dlogp must be [N,classes]");
  return classes_of(desc.output(0), desc.input(1), desc.input(0), "dloss");
}

LossRows mse_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  require_packed(desc.input(1), GPUNN_F32, "target");
  require_same_shape(desc.input(0), desc.input(1), "x and target");
  return rows_of(desc.input(0), desc.output(0), "loss");
}

LossRows mse_backward_of(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 1);
  require_packed(desc.input(2), GPUNN_F32, "target");
  require_packed(desc.output(0), GPUNN_F32, "dx");
  require_same_shape(desc.input(1), desc.input(2), "x and target");
  require_same_shape(desc.input(1), desc.output(0), "x and dx");
  return rows_of(desc.input(1), desc.input(0), "dloss");
}

LossRows cross_entropy_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 2);
  require_packed(desc.output(1), GPUNN_F32, "logp");
  require_same_shape(desc.input(0), desc.output(1), "x and logp");
  return classes_of(desc.input(0), desc.input(1), desc.output(0), "loss");
}

LossRows cross_entropy_backward_of(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 1);
  require_packed(desc.output(0), GPUNN_F32, "dx");
  require_same_shape(desc.input(1), desc.output(0), "logp and dx");
  return classes_of(desc.input(1), desc.input(2), desc.input(0), "dloss");
}

LossRows soft_cross_entropy_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 2);
  require(desc.input(0).rank == 2, "x must be [N,C]");
  require_packed(desc.input(1), GPUNN_F32, "target");
  require_packed(desc.output(1), GPUNN_F32, "logp");
  require_same_shape(desc.input(0), desc.input(1), "x and target");
  require_same_shape(desc.input(0), desc.output(1), "x and logp");
  return rows_of(desc.input(0), desc.output(0), "loss");
}

LossRows soft_cross_entropy_backward_of(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 1);
  require(desc.input(1).rank == 2, "logp must be [N,C]");
  require_packed(desc.input(2), GPUNN_F32, "target");
  require_packed(desc.output(0), GPUNN_F32, "dx");
  require_same_shape(desc.input(1), desc.input(2), "logp and target");
  require_same_shape(desc.input(1), desc.output(0), "logp and dx");
  return rows_of(desc.input(1), desc.input(0), "dloss");
}

}  // namespace gpunn::backends
