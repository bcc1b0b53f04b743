// The largest of n numbers, for files of simd/. In lanes of our own, since not every compiler vectorises a maximum.
#pragma once

#include <cstdint>

namespace gpunn::cpu {
namespace {

// NaN wins, also over a later number: a comparison with NaN is false.
inline float larger_of(float best, float x) {
  const float most = x > best ? x : best;
  return x != x ? x : most;
}

// -inf where n is 0.
inline float maximum(const float* x, int64_t n) {
  constexpr int kLanes = 16;
  float most = -__builtin_inff();
  int64_t i = 0;
  if (n >= kLanes) {
    float lanes[kLanes];
    for (int k = 0; k < kLanes; ++k) lanes[k] = x[k];
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
#pragma omp simd
      for (int k = 0; k < kLanes; ++k) lanes[k] = larger_of(lanes[k], x[i + k]);
    }
    // NOLINTNEXTLINE(modernize-loop-convert): a counted loop is vectorised
    for (int k = 0; k < kLanes; ++k) most = larger_of(most, lanes[k]);
  }
  for (; i < n; ++i) most = larger_of(most, x[i]);
  return most;
}

}  // namespace
}  // namespace gpunn::cpu
