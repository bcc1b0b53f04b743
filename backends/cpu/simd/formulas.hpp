// Activations and their slopes at one number, for use in vectorised loops.
#pragma once

#include "simd/exp.hpp"

namespace gpunn::cpu {
namespace {

inline constexpr float kRootOfTwoByPi = 0.7978845608F;
inline constexpr float kCubic = 0.044715F;  // of GELU by tanh

inline float sigmoid(float x) { return 1.0F / (1.0F + exp_f32(-x)); }

// Near 0 an odd polynomial, which keeps the relative error (coefficients of Moshier's Cephes library, tanhf.c); further
// out by exp. Both are computed: a branch would not be vectorised.
inline float tanh_f32(float x) {
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
  return sigmoid(2.0F * kRootOfTwoByPi * (near + kCubic * near * near * near));
}

inline float silu_backward(float dy, float x) {
  const float s = sigmoid(x);
  return dy * (s * (1.0F + x * (1.0F - s)));
}

inline float gelu_erf_backward(float dy, float x) {
  const Normal normal = normal_of(x);
  return dy * (normal.below + x * normal.density);
}

inline float gelu_tanh_backward(float dy, float x) {
  const float gate = tanh_gate(x);
  const float near = within_reach(x);
  const float slope = 2.0F * kRootOfTwoByPi * (1.0F + 3.0F * kCubic * near * near);
  return dy * (gate + x * (gate * (1.0F - gate) * slope));
}

}  // namespace
}  // namespace gpunn::cpu
