// The f32 matrix product: packed and cache-blocked after Goto and van de Geijn (2008) and BLIS (Van Zee and van de
// Geijn, 2015), without packing where an operand can be read in place.
#pragma once

#include <cstdint>

#include "simd/gemm.hpp"

namespace gpunn::cpu {

// c[m, n] = op(a) op(b), all row-major and packed; a is [m, k], or [k, m] transposed; b is [k, n], or [n, k]
// transposed.
struct GemmShape {
  int64_t m;
  int64_t n;
  int64_t k;
  bool transpose_a;
  bool transpose_b;
};

// What is added to, and done with, the product.
struct GemmEpilogue {
  const float* column_bias = nullptr;  // [n]
  bool relu = false;
};

// The product at one shape. Bits of the result don't depend on `threads`.
class Gemm {
 public:
  Gemm(const GemmShape& shape, int threads);

  // Of 64-byte aligned scratch that run needs.
  uint64_t workspace_bytes() const { return static_cast<uint64_t>(a_floats_ + b_floats_) * sizeof(float); }

  void run(const float* a, const float* b, float* c, const GemmEpilogue& epilogue, float* workspace) const;

 private:
  // A factor: element (i, p) at i * index_stride + p * k_stride.
  struct Strides {
    int64_t index;
    int64_t k;
  };
  struct Block;

  void run_dots(const float* a, const float* b, float* c, const GemmEpilogue& epilogue) const;
  void pack_block(const Block& block) const;
  void multiply_block(const Block& block) const;

  const GemmKernels* kernels_;
  int threads_;
  int64_t m_, n_, k_;  // of the product as computed: where `swapped_`, of its transpose
  Strides a_{}, b_{};
  bool dots_;
  bool swapped_;
  bool a_in_place_;
  bool b_in_place_;
  int64_t tile_rows_;     // height of a panel of a
  int64_t tile_columns_;  // width of a panel of b
  int64_t m_block_;
  int64_t n_block_;
  int64_t k_block_;
  int64_t a_panel_floats_;
  int64_t b_panel_floats_;
  int64_t a_floats_ = 0;
  int64_t b_floats_ = 0;
};

}  // namespace gpunn::cpu
