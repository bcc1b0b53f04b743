#include "simd/lanes/dots.hpp"

#include "simd/lanes/vec.hpp"

namespace gpunn::cpu::GPUNN_ISA {

namespace {

// As many accumulators as leave registers for the operands.
constexpr int kColumnsAtOnce = kLanes >= 16 ? 4 : 2;

GPUNN_ALWAYS_INLINE Vec load_some(const float* p, int lanes) {
  return lanes == kLanes ? load(p) : load_first(p, lanes);
}

GPUNN_ALWAYS_INLINE void add_products(const DotTile& t, int first, int64_t k, int lanes,
                                      Vec (&sum)[kDotRows][kColumnsAtOnce]) {
  Vec b[kColumnsAtOnce];
  for (int j = 0; j < kColumnsAtOnce; ++j) b[j] = load_some(t.b[first + j] + k, lanes);
  for (int i = 0; i < kDotRows; ++i) {
    const Vec a = load_some(t.a[i] + k, lanes);
    for (int j = 0; j < kColumnsAtOnce; ++j) sum[i][j] += a * b[j];
  }
}

void dot_tile(DotTile& t) {
  for (int first = 0; first < kDotColumns; first += kColumnsAtOnce) {
    Vec sum[kDotRows][kColumnsAtOnce] = {};
    int64_t k = 0;
    for (; k + kLanes <= t.terms; k += kLanes) add_products(t, first, k, kLanes, sum);
    if (k < t.terms) add_products(t, first, k, static_cast<int>(t.terms - k), sum);
    for (int i = 0; i < kDotRows; ++i) {
      for (int j = 0; j < kColumnsAtOnce; ++j) t.sums[i][first + j] = sum_lanes(sum[i][j]);
    }
  }
}

}  // namespace

extern const DotKernels dot_kernels;
const DotKernels dot_kernels{dot_tile};

}  // namespace gpunn::cpu::GPUNN_ISA
