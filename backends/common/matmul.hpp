// MATMUL, BATCH_MATMUL and MATMUL_BIAS_ACTIVATION.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// y[m, n] = op(a) op(b), all row-major and packed. a is [m, k], or [k, m] if transposed; b is [k, n], or [n, k] if
// transposed.
struct Matmul {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool relu = false;  // of MATMUL_BIAS_ACTIVATION, whose bias is [n]
};

// The same for each i of a[batch,...] and b[batch,...].
struct BatchMatmul {
  int64_t batch = 0;
  Matmul one;
};

namespace detail {

// The matrix product over the last two dimensions.
template <class Attrs>
Matmul matmul_with(const OpDesc& desc, const Attrs& attrs) {
  const gpunn_tensor &a = desc.input(0), &y = desc.output(0);
  const bool transpose_a = attrs.transpose_a != 0;
  return {.m = y.dim[y.rank - 2],
          .n = y.dim[y.rank - 1],
          .k = a.dim[a.rank - (transpose_a ? 2 : 1)],
          .transpose_a = transpose_a,
          .transpose_b = attrs.transpose_b != 0};
}

}  // namespace detail

inline Matmul matmul_of(const OpDesc& desc) { return detail::matmul_with(desc, desc.attrs<gpunn_matmul_attrs>()); }

inline BatchMatmul batch_matmul_of(const OpDesc& desc) {
  return {.batch = desc.output(0).dim[0], .one = matmul_of(desc)};
}

inline Matmul matmul_bias_activation_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_matmul_bias_activation_attrs>();
  Matmul shape = detail::matmul_with(desc, attrs);
  shape.relu = is_relu(attrs.activation);
  return shape;
}

}  // namespace gpunn::backends
