// The formulas of element-wise ops and updates at one number, for use in vectorised loops, and the functions that they
// call.
#pragma once

#include <gpunn/op_attrs.hpp>

#include "simd/lanes/exp.hpp"

namespace gpunn::cpu {
namespace {
namespace formulas {

inline float exp(float x) { return exp_f32(x); }
inline float log(float x) { return __builtin_logf(x); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline float rsqrt(float x) { return 1.0F / __builtin_sqrtf(x); }
inline float erf(float x) { return __builtin_erff(x); }
inline float pow(float x, float y) { return __builtin_powf(x, y); }
inline float sigmoid(float x) { return 1.0F / (1.0F + exp_f32(-x)); }

// Near 0 an odd polynomial, which keeps the relative error (coefficients of Moshier's Cephes library, tanhf.c); further
// out by exp. Both are computed: a branch would not be vectorised.
inline float tanh(float x) {
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

// e^(-z^2), z = |x| / sqrt(2).
inline float falling(float x) {
  const float z = (x < 0.0F ? -x : x) * 0.70710678118F;
  return exp_f32(-z * z);
}

// erf by Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26, whose error is below 1.5e-7.
inline float normal(float x) {
  const float z = (x < 0.0F ? -x : x) * 0.70710678118F;
  const float t = 1.0F / (1.0F + 0.3275911F * z);
  float p = 1.061405429F;
  p = p * t - 1.453152027F;
  p = p * t + 1.421413741F;
  p = p * t - 0.284496736F;
  p = p * t + 0.254829592F;
  const float tail = 0.5F * p * t * falling(x);  // beyond |x|
  return x < 0.0F ? tail : 1.0F - tail;
}

inline float normal_density(float x) { return 0.3989422804F * falling(x); }

inline float select(bool condition, float a, float b) { return condition ? a : b; }

#include <gpunn/op_formulas.inc>

}  // namespace formulas
}  // namespace
}  // namespace gpunn::cpu
