// The inner loops of depthwise convolution of channels-last images: every channel has a filter of its own, and a vector
// is of channels.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

// Targets of a row that take the same taps. Distances are in floats.
struct DepthwiseRun {
  static constexpr int kMostRows = 64;

  const float* const* x;  // [rows]: the first target's first tap in each source row
  const float* const* w;  // [rows]: the first tap in the filter's row
  int rows;
  int taps;       // of a row
  int64_t x_tap;  // from one tap to the next
  int64_t w_tap;
  int64_t x_target;  // from one target to the next
  int64_t targets;
  int64_t channels;
};

struct DepthwiseKernels {
  // y[j * y_target + c] = the sum over rows and taps of w * x, plus bias (may be null), through ReLU.
  void (*row)(const DepthwiseRun& run, const float* bias, bool relu, float* y, int64_t y_target);
  // sums[row * sums_row + tap * sums_tap + c] += the sum over the targets of dy[j * dy_target + c] * x.
  void (*filter)(const DepthwiseRun& run, const float* dy, int64_t dy_target, float* sums, int64_t sums_row,
                 int64_t sums_tap);
};

GPUNN_DECLARE_ISA_VARIANTS(DepthwiseKernels, depthwise_kernels);

}  // namespace gpunn::cpu
