// Max pooling of packed images by windows of 2x2 at stride 2 without padding, the case of nearly every network, and any
// window of channels-last images, of which maxima may be of bytes.
#pragma once

#include <gpunn/float_formats.hpp>

#include <cstdint>
#include <type_traits>

#include "isa.hpp"

namespace gpunn::cpu {

// A window of channels-last pixels, as far as the image has them. Distances are in elements.
struct PixelWindow {
  int64_t rows;
  int64_t columns;
  int64_t row;    // from one row to the next
  int64_t pixel;  // from one pixel to the next
};

// T is float or BFloat16.
template <class T>
struct PixelKernels {
  // Of a window of pixels at x, by channel: the largest value, or a NaN of theirs.
  void (*largest)(const T* x, const PixelWindow& window, int64_t channels, T* y);
  // dx += dy at the first pixel that holds y, or a NaN.
  void (*to_largest)(const T* dy, const T* x, const T* y, const PixelWindow& window, int64_t channels, T* dx);
  // y = the sum over the window, divided; dx += dy / divisor all over the window.
  void (*average)(const T* x, const PixelWindow& window, int64_t channels, float divisor, T* y);
  void (*to_all)(const T* dy, const PixelWindow& window, int64_t channels, float divisor, T* dx);
};

// One plane is [height, width] before pooling and [height / 2, width / 2] after.
struct PoolingKernels {
  void (*forward)(const float* x, float* y, int64_t planes, int64_t height, int64_t width);
  // Writes every element of dx once.
  void (*backward)(const float* dy, const float* x, const float* y, float* dx, int64_t planes, int64_t height,
                   int64_t width);
  PixelKernels<float> f32;
  PixelKernels<BFloat16> bf16;
  // largest, of bytes
  void (*largest_byte)(const uint8_t* x, const PixelWindow& window, int64_t channels, uint8_t* y);

  template <class T>
  const PixelKernels<T>& pixels() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else {
      return bf16;
    }
  }
};

GPUNN_DECLARE_ISA_VARIANTS(PoolingKernels, pooling_kernels);

}  // namespace gpunn::cpu
