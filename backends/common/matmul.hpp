// MATMUL and MATMUL_BIAS_ACTIVATION.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// y[m, n] = op(a) op(b), all row-major and packed; a is [m, k], or [k, m] transposed; b is [k, n], or [n, k]
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

Matmul matmul_of(const OpDesc& desc);
BatchMatmul batch_matmul_of(const OpDesc& desc);
Matmul matmul_bias_activation_of(const OpDesc& desc);

}  // namespace gpunn::backends
