#include "common/softmax.hpp"

namespace gpunn::backends {
namespace {

SoftmaxRows rows_of(const OpDesc& desc, std::size_t inputs) {
  require_tensors(desc, inputs, inputs, 1);
  const gpunn_tensor& y = desc.output(0);
  require_packed(y, GPUNN_F32, "the output");
  for (std::size_t i = 0; i < inputs; ++i) {
    require_packed(desc.input(i), GPUNN_F32, "an input");
    require_same_shape(desc.input(i), y, "inputs and output");
  }
  require(y.rank >= 1, "a scalar has no last dimension");
  SoftmaxRows shape;
  shape.columns = y.dim[y.rank - 1];
  require(shape.columns >= 1, "the last dimension must not be empty");
  shape.rows = plugin::element_count(y) / shape.columns;
  return shape;
}

}  // namespace

SoftmaxRows softmax_of(const OpDesc& desc) { return rows_of(desc, 1); }
SoftmaxRows softmax_backward_of(const OpDesc& desc) { return rows_of(desc, 2); }

}  // namespace gpunn::backends
