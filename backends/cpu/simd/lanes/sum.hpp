// The sum of n numbers, for files of simd/. In lanes and blocks of our own, so that neither its accuracy nor its value
// depends on whether, or how wide, the compiler vectorises it.
#pragma once

#include <cstdint>

namespace gpunn::cpu {
namespace {

// 0 where n is 0. The rounding error grows with n / 4096 + 256, not with n.
inline float sum_of(const float* x, int64_t n) {
  constexpr int kLanes = 16;
  constexpr int64_t kBlock = 4096;
  float total = 0.0F;
  int64_t i = 0;
  while (n - i >= kLanes) {
    const int64_t end = n - i < kBlock ? n : i + kBlock;
    float lanes[kLanes] = {};
    for (; i + kLanes <= end; i += kLanes) {
#pragma omp simd
      for (int k = 0; k < kLanes; ++k) lanes[k] += x[i + k];
    }
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int k = 0; k < width; ++k) lanes[k] += lanes[k + width];
    }
    total += lanes[0];
  }
  for (; i < n; ++i) total += x[i];
  return total;
}

}  // namespace
}  // namespace gpunn::cpu
