// The inner kernels of the matrix product.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

// c[i, j] (+)= sum over p of a[p * a_stride + i] * b[p * b_stride + j], then the epilogue; of rows_tile
// a[i * a_stride + p].
struct GemmTile {
  int64_t k;
  const float* a;
  int64_t a_stride;
  const float* b;  // readable up to a multiple of the vector width in j
  int64_t b_stride;
  float* c;  // c[i * c_row + j * c_column]
  int64_t c_row;
  int64_t c_column;
  int rows;     // up to GemmKernels::tile_rows
  int columns;  // up to GemmKernels::tile_columns
  bool accumulate;
  const float* row_bias;     // [rows] or null
  const float* column_bias;  // [columns] or null
  bool relu;
};

struct GemmKernels {
  int lanes;
  int tile_rows;
  int tile_columns;
  void (*tile)(const GemmTile& tile);
  // The same with a in rows along p: as what pixels of channels-last images are.
  void (*rows_tile)(const GemmTile& tile);
  // to[p * width + i] = from[i * index_stride + p * k_stride], 0 for count <= i < width, p < k. One of the strides is
  // 1. Writes up to `lanes` floats past the end.
  void (*pack)(const float* from, int64_t index_stride, int64_t k_stride, int64_t count, int64_t width, int64_t k,
               float* to);
  // The dot product of two rows of k.
  float (*dot)(const float* a, const float* b, int64_t k);
};

GPUNN_DECLARE_ISA_VARIANTS(GemmKernels, gemm_kernels);

}  // namespace gpunn::cpu
