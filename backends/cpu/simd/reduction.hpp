// Sums and maxima of packed f32. A NaN wins a maximum.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct ReductionKernels {
  // Of n numbers; 0 and -inf where n is 0.
  float (*sum)(const float* x, int64_t n);
  float (*max)(const float* x, int64_t n);
  // totals[width] = totals + (or the larger of totals and) each of `rows` rows, `stride` apart.
  void (*add_rows)(const float* x, int64_t stride, int64_t rows, float* totals, int64_t width);
  void (*max_rows)(const float* x, int64_t stride, int64_t rows, float* totals, int64_t width);
  // The sum of squares in f64, where no square of an f32 overflows or vanishes.
  double (*sum_of_squares)(const float* x, int64_t n);
};

GPUNN_DECLARE_ISA_VARIANTS(ReductionKernels, reduction_kernels);

}  // namespace gpunn::cpu
