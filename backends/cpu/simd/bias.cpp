#include "simd/bias.hpp"

namespace gpunn::cpu {
namespace {

void add(const float* x, const float* bias, float* y, ChannelShape shape) {
  if (shape.size == 1) {
    for (int64_t row = 0; row < shape.rows; ++row) {
#pragma omp simd
      for (int64_t c = 0; c < shape.channels; ++c) y[c] = x[c] + bias[c];
      x += shape.channels;
      y += shape.channels;
    }
    return;
  }
  for (int64_t row = 0; row < shape.rows; ++row) {
    for (int64_t c = 0; c < shape.channels; ++c) {
      const float b = bias[c];
#pragma omp simd
      for (int64_t i = 0; i < shape.size; ++i) y[i] = x[i] + b;
      x += shape.size;
      y += shape.size;
    }
  }
}

// The two backwards are one loop nest; with masked unset y is not read and dx not written.
template <bool masked>
inline void backward(const float* dy, const float* y, float* dx, float* sums, ChannelShape shape) {
  for (int64_t c = 0; c < shape.channels; ++c) sums[c] = 0.0F;
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (shape.size == 1) {
#pragma omp simd
      for (int64_t c = 0; c < shape.channels; ++c) {
        float gradient = dy[c];
        if constexpr (masked) {
          gradient = y[c] > 0.0F ? gradient : 0.0F;
          dx[c] = gradient;
        }
        sums[c] += gradient;
      }
      dy += shape.channels;
      if constexpr (masked) y += shape.channels, dx += shape.channels;
      continue;
    }
    for (int64_t c = 0; c < shape.channels; ++c) {
      float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < shape.size; ++i) {
        float gradient = dy[i];
        if constexpr (masked) {
          gradient = y[i] > 0.0F ? gradient : 0.0F;
          dx[i] = gradient;
        }
        sum += gradient;
      }
      sums[c] += sum;
      dy += shape.size;
      if constexpr (masked) y += shape.size, dx += shape.size;
    }
  }
}

void sum_channels(const float* dy, float* sums, ChannelShape shape) {
  backward<false>(dy, nullptr, nullptr, sums, shape);
}

void relu_backward(const float* dy, const float* y, float* dx, float* sums, ChannelShape shape) {
  backward<true>(dy, y, dx, sums, shape);
}

}  // namespace

namespace GPUNN_ISA {
extern const BiasKernels bias_kernels;
const BiasKernels bias_kernels{add, sum_channels, relu_backward};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
