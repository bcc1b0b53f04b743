// Matrix products within a task of one thread, of factors that lie as they are in memory or as pack_transposed() put
// them.
#pragma once

#include <cstdint>

#include "simd/gemm.hpp"

namespace gpunn::cpu {

// Rows of f32, `stride` apart.
struct Rows {
  const float* data;
  int64_t stride;

  Rows from(int64_t row) const { return {data + row * stride, stride}; }
};

// The right factor: element (p, j) is at data[j / tile_columns * panel + p * stride + j % tile_columns].
struct RightFactor {
  const float* data;
  int64_t stride;
  int64_t panel;
};

// `x` as the factor whose rows are those of x, readable up to a multiple of the lanes.
RightFactor right_factor(const GemmKernels& kernels, const Rows& x);
// The transpose of x[count, width], in packed_floats() floats; zeros fill the columns up to a multiple of the lanes.
RightFactor pack_transposed(const GemmKernels& kernels, const Rows& x, int64_t count, int64_t width, float* packed);
int64_t packed_floats(const GemmKernels& kernels, int64_t count, int64_t width);

struct ProductSize {
  int64_t m;
  int64_t n;  // a multiple of the lanes
  int64_t k;
};

// c[m, n] = a b, or c += a b; of multiply_transposed() c = a' b for a[k, m].
void multiply(const GemmKernels& kernels, const ProductSize& size, const Rows& a, const RightFactor& b, float* c,
              int64_t c_stride, bool accumulate);
void multiply_transposed(const GemmKernels& kernels, const ProductSize& size, const Rows& a, const RightFactor& b,
                         float* c, int64_t c_stride, bool accumulate);

}  // namespace gpunn::cpu
