#include "simd/activation.hpp"

#include "simd/exp.hpp"

namespace gpunn::cpu {
namespace {

constexpr float kRootOfTwoByPi = 0.7978845608F;
constexpr float kCubic = 0.044715F;  // of GELU by tanh

inline float sigmoid_of(float x) { return 1.0F / (1.0F + exp_f32(-x)); }

// Near 0 an odd polynomial, which keeps the relative error (coefficients of Moshier's Cephes library, tanhf.c); further
// out by exp. Both are computed: a branch would not be vectorised.
inline float tanh_of(float x) {
  const float size = x < 0.0F ? -x : x;
  const float square = x * x;
  float p = -5.70498872745e-3F;
  p = p * square + 2.06390887954e-2F;
  p = p * square - 5.37397155531e-2F;
  p = p * square + 1.33314422036e-1F;
  p = p * square - 3.33332819422e-1F;
  const float near = p * square * x + x;
  const float far = 1.0F - 2.0F / (exp_f32(2.0F * size) + 1.0F);
  const float signed_far = x < 0.0F ? -far : far;
  return size < 0.625F ? near : signed_far;
}

// The normal distribution's function and its density. erf by Abramowitz and Stegun, Handbook of Mathematical Functions,
// 7.1.26, whose error is below 1.5e-7.
struct Normal {
  float below, density;
};

inline Normal normal_of(float x) {
  const float z = (x < 0.0F ? -x : x) * 0.70710678118F;
  const float falling = exp_f32(-z * z);
  const float t = 1.0F / (1.0F + 0.3275911F * z);
  float p = 1.061405429F;
  p = p * t - 1.453152027F;
  p = p * t + 1.421413741F;
  p = p * t - 0.284496736F;
  p = p * t + 0.254829592F;
  const float tail = 0.5F * p * t * falling;  // beyond |x|
  return {x < 0.0F ? tail : 1.0F - tail, 0.3989422804F * falling};
}

// Beyond 16 the gate is 0 or 1, and x^3 could overflow. This way round a NaN passes.
inline float within_reach(float x) {
  const float above = x < -16.0F ? -16.0F : x;
  return above > 16.0F ? 16.0F : above;
}

// (1 + tanh(u)) / 2 is sigmoid(2 u).
inline float tanh_gate(float x) {
  const float near = within_reach(x);
  return sigmoid_of(2.0F * kRootOfTwoByPi * (near + kCubic * near * near * near));
}

void relu(const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0.0F ? 0.0F : x[i];  // this way round a NaN stays
}

void relu_backward(const float* dy, const float* y, float* dx, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float gradient = dy[i];  // loaded in any case: a conditional load is not vectorised for SSE2
    dx[i] = y[i] > 0.0F ? gradient : 0.0F;
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

void sigmoid(const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = sigmoid_of(x[i]);
}

void sigmoid_backward(const float* dy, const float* y, float* dx, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * y[i] * (1.0F - y[i]);
}

void tanh(const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = tanh_of(x[i]);
}

void tanh_backward(const float* dy, const float* y, float* dx, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (1.0F - y[i] * y[i]);
}

void silu(const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * sigmoid_of(x[i]);
}

void silu_backward(const float* dy, const float* x, float* dx, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float s = sigmoid_of(x[i]);
    dx[i] = dy[i] * (s * (1.0F + x[i] * (1.0F - s)));
  }
}

void gelu_erf(const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * normal_of(x[i]).below;
}

void gelu_erf_backward(const float* dy, const float* x, float* dx, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const Normal normal = normal_of(x[i]);
    dx[i] = dy[i] * (normal.below + x[i] * normal.density);
  }
}

void gelu_tanh(const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * tanh_gate(x[i]);
}

void gelu_tanh_backward(const float* dy, const float* x, float* dx, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float gate = tanh_gate(x[i]);
    const float near = within_reach(x[i]);
    const float slope = 2.0F * kRootOfTwoByPi * (1.0F + 3.0F * kCubic * near * near);
    dx[i] = dy[i] * (gate + near * (gate * (1.0F - gate) * slope));
  }
}

}  // namespace

namespace GPUNN_ISA {
extern const ActivationKernels activation_kernels;
const ActivationKernels activation_kernels{
    .relu = relu,
    .sigmoid = sigmoid,
    .tanh = tanh,
    .silu = silu,
    .gelu_erf = gelu_erf,
    .gelu_tanh = gelu_tanh,
    .relu_backward = relu_backward,
    .sigmoid_backward = sigmoid_backward,
    .tanh_backward = tanh_backward,
    .silu_backward = silu_backward,
    .gelu_erf_backward = gelu_erf_backward,
    .gelu_tanh_backward = gelu_tanh_backward,
    .leaky_relu = leaky_relu,
    .leaky_relu_backward = leaky_relu_backward,
};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
