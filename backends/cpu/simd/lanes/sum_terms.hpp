// Sums of terms that are computed on the way, for files of simd/; sum.hpp has sums of numbers in memory. Both add in a
// fixed order of lanes and blocks, and in f64 beyond a block.
#pragma once

#include <cstdint>

namespace gpunn::cpu {
namespace {

// The sum of term(i) for i < n.
template <class Term>
inline double sum_terms(int64_t n, const Term& term) {
  constexpr int kLanes = 16;
  constexpr int64_t kBlock = 4096;
  double total = 0.0;
  int64_t i = 0;
  while (n - i >= kLanes) {
    const int64_t end = n - i < kBlock ? n : i + kBlock;
    float lanes[kLanes] = {};
    for (; i + kLanes <= end; i += kLanes) {
#pragma omp simd
      for (int k = 0; k < kLanes; ++k) lanes[k] += term(i + k);
    }
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int k = 0; k < width; ++k) lanes[k] += lanes[k + width];
    }
    total += static_cast<double>(lanes[0]);
  }
  for (; i < n; ++i) total += static_cast<double>(term(i));
  return total;
}

}  // namespace
}  // namespace gpunn::cpu
