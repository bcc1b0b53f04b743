// Exponentials of rows of numbers, for files of simd/.
#pragma once

#include <cstdint>

#include "simd/lanes/exp.hpp"
#include "simd/lanes/sum.hpp"

namespace gpunn::cpu {
namespace {

// Numbers that stay in the first-level cache.
inline constexpr int64_t kSoftmaxBlock = 2048;

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

inline int64_t rows_per_block(int64_t columns) { return columns >= kSoftmaxBlock ? 1 : kSoftmaxBlock / columns; }

inline void exp_n(const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = exp_f32(x[i]);
}

// The sum of exp(x - most) over a row of any length, by way of a buffer of kSoftmaxBlock.
inline float exp_sum(const float* x, float most, int64_t columns, float* buffer) {
  float sum = 0.0F;
  for (int64_t first = 0; first < columns; first += kSoftmaxBlock) {
    const int64_t count = smaller(kSoftmaxBlock, columns - first);
#pragma omp simd
    for (int64_t c = 0; c < count; ++c) buffer[c] = exp_f32(x[first + c] - most);
    sum += sum_of(buffer, count);
  }
  return sum;
}

}  // namespace
}  // namespace gpunn::cpu
