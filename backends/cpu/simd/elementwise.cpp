#include "simd/elementwise.hpp"

namespace gpunn::cpu {
namespace {

void scale(const float* x, float factor, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

void axpby(float alpha, const float* a, float beta, const float* b, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = alpha * a[i] + beta * b[i];
}

// A NaN is neither below nor above, and stays.
void clamp(const float* x, float low, float high, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float raised = x[i] < low ? low : x[i];
    y[i] = raised > high ? high : raised;
  }
}

void add_sign(float factor, const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += x[i] > 0.0F ? factor : x[i] < 0.0F ? -factor : 0.0F;
}

}  // namespace

namespace GPUNN_ISA {
extern const ElementwiseKernels elementwise_kernels;
const ElementwiseKernels elementwise_kernels{scale, axpby, clamp, add_sign};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
