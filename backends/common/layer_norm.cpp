#include "common/layer_norm.hpp"

namespace gpunn::backends {
namespace {

LayerNorm layer_norm_shape(const gpunn_tensor& x, const gpunn_tensor& y) {
  require_packed(x, GPUNN_F32, "x");
  require_packed(y, GPUNN_F32, "y and dx");
  require(x.rank == 2, "x must be [N,D]");
  require(x.dim[1] > 0, "x must have at least one column");
  require_same_shape(x, y, "x and y, or dx");
  return {.rows = x.dim[0], .columns = x.dim[1], .epsilon = 0};
}

void require_numbers(const gpunn_tensor& tensor, int64_t count, const char* name) {
  require_packed(tensor, GPUNN_F32, name);
  require_shape(tensor, {count}, name);
}

}  // namespace

LayerNorm layer_norm_of(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 3);
  LayerNorm shape = layer_norm_shape(desc.input(0), desc.output(0));
  for (std::size_t i = 1; i < 3; ++i) {
    require_numbers(desc.input(i), shape.columns, "gamma and beta");
    require_numbers(desc.output(i), shape.rows, "mean and rstd");
  }
  shape.epsilon = require_attrs<gpunn_layer_norm_attrs>(desc).epsilon;
  require(shape.epsilon > 0, "epsilon must be positive");
  return shape;
}

LayerNorm layer_norm_backward_of(const OpDesc& desc) {
  require_tensors(desc, 5, 5, 3);
  const LayerNorm shape = layer_norm_shape(desc.input(1), desc.output(0));
  require_packed(desc.input(0), GPUNN_F32, "dy");
  require_same_shape(desc.input(0), desc.input(1), "dy and x");
  require_numbers(desc.input(2), shape.columns, "gamma");
  for (std::size_t i = 3; i < 5; ++i) require_numbers(desc.input(i), shape.rows, "mean and rstd");
  for (std::size_t i = 1; i < 3; ++i) require_numbers(desc.output(i), shape.columns, "dgamma and dbeta");
  return shape;
}

}  // namespace gpunn::backends
