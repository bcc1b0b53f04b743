// Loops over x[rows, channels, size]. Numbers by channel are arrays of `channels`.
#pragma once

#include <gpunn/float_formats.hpp>

#include <cstdint>
#include <type_traits>

#include "isa.hpp"
#include "simd/images/channel_shape.hpp"

namespace gpunn::cpu {

// A gradient of [rows, channels] through ReLU: dy + more (may be null) where the ReLU's result is positive.
template <class T>
struct MaskedRows {
  const T* dy;
  const T* more;

  MaskedRows from(int64_t offset) const { return {dy + offset, more == nullptr ? nullptr : more + offset}; }
};

// T is float, or BFloat16 where `size` is 1.
template <class T>
struct NormalizationLoops {
  // sums += x, by channel.
  void (*sum)(const T* x, double* sums, ChannelShape shape);
  // squares += (x - mean)^2, by channel.
  void (*squares)(const T* x, const float* mean, double* squares, ChannelShape shape);
  // sums += dy and products += dy * (x - mean), by channel.
  void (*products)(const T* dy, const T* x, const float* mean, double* sums, double* products, ChannelShape shape);
  // y = (x - mean) * factor + beta, plus `other` (may be null), through ReLU; y may be x.
  void (*apply)(const T* x, const float* mean, const float* factor, const float* beta, const T* other, bool relu, T* y,
                ChannelShape shape);
  // to = dy + more (may be null) where y is positive, elsewhere 0; `to` may be dy.
  void (*masked)(const T* dy, const T* more, const T* y, T* to, int64_t n);
  // products of a gradient through a ReLU that gave y, where `size` is 1. The gradient goes to `masked`, or if that is
  // null, which lanes it has goes to `bits`, a number for each vector of a row.
  void (*masked_products)(MaskedRows<T> gradient, const T* y, T* masked, uint16_t* bits, const T* x, const float* mean,
                          double* sums, double* products, ChannelShape shape);
  // backward of that gradient, by those bits.
  void (*masked_backward)(MaskedRows<T> gradient, const uint16_t* bits, const T* x, const float* mean,
                          const float* factor, const float* offset, const float* slope, T* dx, ChannelShape shape);
  // dx = factor * (dy - offset - (x - mean) * slope).
  void (*backward)(const T* dy, const T* x, const float* mean, const float* factor, const float* offset,
                   const float* slope, T* dx, ChannelShape shape);
};

struct NormalizationKernels {
  int lanes;
  NormalizationLoops<float> f32;
  NormalizationLoops<BFloat16> bf16;

  template <class T>
  const NormalizationLoops<T>& of() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else {
      return bf16;
    }
  }
};

GPUNN_DECLARE_ISA_VARIANTS(NormalizationKernels, normalization_kernels);

}  // namespace gpunn::cpu
