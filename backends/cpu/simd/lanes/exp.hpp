// e^x in f32, for use in vectorised loops.
//
// x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts so that r is exact to f32 (Cody and Waite, 1980); e^r by its
// Taylor series to the 7th degree, whose first omitted term is below 6e-9; 2^n in two factors, so that results below
// the smallest normal number round once and gradually. Error under 2 ulp (measured over all floats:
// tests/backends_cpu/softmax_loss_test.cpp). e^-inf = 0, e^inf = inf, NaN stays NaN.
#pragma once

#include <cstdint>

namespace gpunn::cpu {
namespace {

inline float power_of_two(int32_t n) { return __builtin_bit_cast(float, (n + 127) << 23); }

inline float exp_f32(float x) {
  // Beyond these the result is 0 or inf anyway. This way round a NaN passes.
  x = x < -104.0F ? -104.0F : x;
  x = x > 89.0F ? 89.0F : x;
  // Adding 1.5 * 2^23 rounds to an integer, which then lies in the low bits.
  constexpr float kRound = 12582912.0F;
  const float shifted = x * 1.44269504F + kRound;
  const int32_t n = __builtin_bit_cast(int32_t, shifted) - __builtin_bit_cast(int32_t, kRound);
  const float whole = shifted - kRound;
  const float r = (x - whole * 0.693359375F) - whole * -2.12194440e-4F;
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r * r + r + 1.0F;
  // A NaN has put any n here; it still is a NaN after the products.
  const int32_t half = n >> 1;
  return p * power_of_two(half) * power_of_two(n - half);
}

}  // namespace
}  // namespace gpunn::cpu
