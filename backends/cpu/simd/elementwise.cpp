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

// This way round a NaN stays.
void relu(const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0.0F ? 0.0F : x[i];
}

void relu_backward(const float* dy, const float* y, float* dx, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float gradient = dy[i];  // loaded in any case: a conditional load is not vectorised for SSE2
    dx[i] = y[i] > 0.0F ? gradient : 0.0F;
  }
}

}  // namespace

namespace GPUNN_ISA {
extern const ElementwiseKernels elementwise_kernels;
const ElementwiseKernels elementwise_kernels{add, scale, relu, relu_backward};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
