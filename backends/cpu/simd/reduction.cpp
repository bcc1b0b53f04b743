#include "simd/reduction.hpp"

#include "simd/maximum.hpp"
#include "simd/sum.hpp"

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

}  // namespace

namespace GPUNN_ISA {
extern const ReductionKernels reduction_kernels;
const ReductionKernels reduction_kernels{sum_of, maximum, add_rows, max_rows};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
