#include "simd/elementwise.hpp"

namespace gpunn::cpu {
namespace {

void add(const float* a, const float* b, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

void scale(const float* x, float factor, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

}  // namespace

namespace GPUNN_ISA {
extern const ElementwiseKernels elementwise_kernels;
const ElementwiseKernels elementwise_kernels{add, scale};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
