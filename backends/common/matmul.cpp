#include "common/matmul.hpp"

#include "common/activation.hpp"
#include "common/declaration.hpp"

namespace gpunn::backends {
namespace {

Matmul matmul_shape(const OpDesc& desc, bool transpose_a, bool transpose_b) {
  const gpunn_tensor& a = desc.input(0);
  const gpunn_tensor& b = desc.input(1);
  require_packed(a, GPUNN_F32, "a");
  require_packed(b, GPUNN_F32, "b");
  require_packed(desc.output(0), GPUNN_F32, "y");
  require(a.rank == 2 && b.rank == 2, "a and b must be matrices");
  Matmul shape;
  shape.transpose_a = transpose_a;
  shape.transpose_b = transpose_b;
  shape.m = a.dim[transpose_a ? 1 : 0];
  shape.k = a.dim[transpose_a ? 0 : 1];
  shape.n = b.dim[transpose_b ? 0 : 1];
  require(b.dim[transpose_b ? 1 : 0] == shape.k, "a and b don't agree in the inner dimension");
  require_shape(desc.output(0), {shape.m, shape.n}, "y");
  return shape;
}

}  // namespace

Matmul matmul_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_matmul_attrs>(desc);
  return matmul_shape(desc, attrs.transpose_a != 0, attrs.transpose_b != 0);
}

BatchMatmul batch_matmul_of(const OpDesc& desc) {
  require_declared(desc);
  const auto attrs = require_attrs<gpunn_matmul_attrs>(desc);
  const gpunn_tensor &a = desc.input(0), &y = desc.output(0);
  BatchMatmul made;
  made.batch = y.dim[0];
  made.one.transpose_a = attrs.transpose_a != 0;
  made.one.transpose_b = attrs.transpose_b != 0;
  made.one.m = y.dim[1];
  made.one.n = y.dim[2];
  made.one.k = a.dim[made.one.transpose_a ? 1 : 2];
  return made;
}

Matmul matmul_bias_activation_of(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 1);
  const auto attrs = require_attrs<gpunn_matmul_bias_activation_attrs>(desc);
  Matmul shape = matmul_shape(desc, attrs.transpose_a != 0, attrs.transpose_b != 0);
  shape.relu = is_relu(attrs.activation);
  require_packed(desc.input(2), GPUNN_F32, "bias");
  require_shape(desc.input(2), {shape.n}, "bias");
  return shape;
}

}  // namespace gpunn::backends
