#include "simd/reduction.hpp"

#include "simd/lanes/maximum.hpp"
#include "simd/lanes/sum.hpp"

namespace gpunn::cpu {
namespace {

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

// In lanes of our own, as sum_of does, so that the value does not depend on how wide the compiler vectorises it.
double sum_of_squares(const float* x, int64_t n) {
  constexpr int kSumLanes = 16;
  double lanes[kSumLanes] = {};
  int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
#pragma omp simd
    for (int k = 0; k < kSumLanes; ++k) lanes[k] += static_cast<double>(x[i + k]) * static_cast<double>(x[i + k]);
  }
  for (int width = kSumLanes / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) lanes[k] += lanes[k + width];
  }
  for (; i < n; ++i) lanes[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return lanes[0];
}

}  // namespace

namespace GPUNN_ISA {
extern const ReductionKernels reduction_kernels;
const ReductionKernels reduction_kernels{sum_of, maximum, add_rows, max_rows, sum_of_squares};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
