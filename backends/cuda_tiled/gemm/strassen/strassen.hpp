// The operands of the kernels of Strassen's algorithm.
#pragma once

#include <cstdint>

#include "gemm/gemm_arguments.cuh"

namespace gpunn::cuda_tiled::strassen {

constexpr int kProducts = 7;
constexpr int kThreads = 256;  // of a block that adds quarters

// An MN-major factor of a product.
struct Factor {
  const float* data = nullptr;
  int row_floats = 0;
};

struct Arguments {
  Factor a[kProducts];  // in the order in which the products are made
  Factor b[kProducts];
  float* y = nullptr;  // the product a b, of which only finished quarters are stored
  int64_t row_of_y = 0;
  const float* before = nullptr;  // added to y, whose rows it has; null: nothing is
  float* also = nullptr;          // a b is added to it, too, and its rows are those of y; null: to nothing
  float* kept = nullptr;          // [2 half_m][2 half_n]: sums that wait; y itself if it is neither of the two before
  int64_t row_of_kept = 0;
  Epilogue epilogue;
  int half_m = 0;
  int half_n = 0;
  int half_k = 0;
};

}  // namespace gpunn::cuda_tiled::strassen
