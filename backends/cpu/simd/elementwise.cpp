#include "simd/elementwise.hpp"

#include "simd/formulas.hpp"
#include "simd/map.hpp"

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

void leaky_relu(const float* x, float slope, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0.0F ? x[i] : slope * x[i];
}

void leaky_relu_backward(const float* dy, const float* x, float slope, float* dx, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = x[i] > 0.0F ? dy[i] : slope * dy[i];
}

void add_sign(float factor, const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += x[i] > 0.0F ? factor : x[i] < 0.0F ? -factor : 0.0F;
}

}  // namespace

namespace GPUNN_ISA {
extern const ElementwiseKernels elementwise_kernels;
const ElementwiseKernels elementwise_kernels{
    .scale = scale,
    .axpby = axpby,
    .clamp = clamp,
    .leaky_relu = leaky_relu,
    .leaky_relu_backward = leaky_relu_backward,
    .gelu_erf = of_one<[](float x) { return x * normal_of(x).below; }>,
    .gelu_tanh = of_one<[](float x) { return x * tanh_gate(x); }>,
    .gelu_erf_backward = of_two<gelu_erf_backward>,
    .gelu_tanh_backward = of_two<gelu_tanh_backward>,
    .add_sign = add_sign,
};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
