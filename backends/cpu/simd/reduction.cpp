#include "simd/reduction.hpp"

#include "simd/maximum.hpp"

namespace gpunn::cpu {
namespace {

// Sums are taken in blocks, so that the rounding error of a long one grows with its blocks.
constexpr int64_t kBlock = 4096;

float sum(const float* x, int64_t n) {
  float total = 0.0F;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t last = n - first < kBlock ? n : first + kBlock;
    float part = 0.0F;
#pragma omp simd reduction(+ : part)
    for (int64_t i = first; i < last; ++i) part += x[i];
    total += part;
  }
  return total;
}

void add_rows(const float* x, int64_t stride, int64_t rows, float* totals, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) totals[i] += x[i];
    x += stride;
  }
}

void max_rows(const float* x, int64_t stride, int64_t rows, float* totals, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      totals[i] = larger_of(totals[i], x[i]);
    }
    x += stride;
  }
}

}  // namespace

namespace GPUNN_ISA {
extern const ReductionKernels reduction_kernels;
const ReductionKernels reduction_kernels{sum, maximum, add_rows, max_rows};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
