// Scalar products of rows that lie contiguous in memory.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

inline constexpr int kDotRows = 4;
inline constexpr int kDotColumns = 4;

// sums[i][j] = the sum over k < terms of a[i][k] * b[j][k], in an order that the instruction set alone decides. A tile
// that is not full repeats a row, and its sum is not used.
struct DotTile {
  const float* a[kDotRows];
  const float* b[kDotColumns];
  int64_t terms;
  float sums[kDotRows][kDotColumns];
};

struct DotKernels {
  void (*tile)(DotTile& tile);
};

GPUNN_DECLARE_ISA_VARIANTS(DotKernels, dot_kernels);

}  // namespace gpunn::cpu
