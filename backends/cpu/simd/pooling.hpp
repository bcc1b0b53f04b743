// Max pooling of packed images by windows of 2x2 at stride 2 without padding, the case of nearly every network, and any
// window of channels-last images.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

// A window of channels-last pixels, as far as the image has them. Distances are in floats.
struct PixelWindow {
  int64_t rows;
  int64_t columns;
  int64_t row;    // from one row to the next
  int64_t pixel;  // from one pixel to the next
};

// One plane is [height, width] before pooling and [height / 2, width / 2] after.
struct PoolingKernels {
  void (*forward)(const float* x, float* y, int64_t planes, int64_t height, int64_t width);
  // Writes every element of dx once.
  void (*backward)(const float* dy, const float* x, const float* y, float* dx, int64_t planes, int64_t height,
                   int64_t width);
  // Of a window of pixels at x, by channel: the largest value, or a NaN of theirs.
  void (*largest)(const float* x, const PixelWindow& window, int64_t channels, float* y);
  // dx += dy at the first pixel that holds y, or a NaN.
  void (*to_largest)(const float* dy, const float* x, const float* y, const PixelWindow& window, int64_t channels,
                     float* dx);
  // y = the sum over the window, divided; dx += dy / divisor all over the window.
  void (*average)(const float* x, const PixelWindow& window, int64_t channels, float divisor, float* y);
  void (*to_all)(const float* dy, const PixelWindow& window, int64_t channels, float divisor, float* dx);
};

GPUNN_DECLARE_ISA_VARIANTS(PoolingKernels, pooling_kernels);

}  // namespace gpunn::cpu
