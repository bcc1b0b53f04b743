// The inner loops of depthwise convolution of channels-last images: a vector holds channels, each of which has its own
// filter.
#pragma once

#include <gpunn/float_formats.hpp>

#include <cstdint>
#include <type_traits>

#include "isa.hpp"

namespace gpunn::cpu {

constexpr int kMostDepthwiseRows = 64;

// Targets of a row that take the same taps. Distances are in numbers. T is float or BFloat16.
template <class T>
struct DepthwiseRun {
  const T* const* x;      // [rows]: the first target's first tap in each source row
  const float* const* w;  // [rows]: the first tap in the filter's row
  int rows;
  int taps;       // of a row
  int64_t x_tap;  // from one tap to the next
  int64_t w_tap;
  int64_t x_target;  // from one target to the next
  int64_t targets;
  int64_t channels;
};

template <class T>
struct DepthwiseKernelsOf {
  // y[j * y_target + c] = the sum over rows and taps of w * x, plus bias (may be null), through ReLU.
  void (*row)(const DepthwiseRun<T>& run, const float* bias, bool relu, T* y, int64_t y_target);
  // sums[row * sums_row + tap * sums_tap + c] += the sum over the targets of dy[j * dy_target + c] * x.
  void (*filter)(const DepthwiseRun<T>& run, const T* dy, int64_t dy_target, float* sums, int64_t sums_row,
                 int64_t sums_tap);
};

struct DepthwiseKernels {
  DepthwiseKernelsOf<float> f32;
  DepthwiseKernelsOf<BFloat16> bf16;

  template <class T>
  const DepthwiseKernelsOf<T>& of() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else {
      return bf16;
    }
  }
};

GPUNN_DECLARE_ISA_VARIANTS(DepthwiseKernels, depthwise_kernels);

}  // namespace gpunn::cpu
