// Loops over x[rows, channels, size]. Numbers by channel are arrays of `channels`.
#pragma once

#include <cstdint>

#include "isa.hpp"
#include "simd/channel_shape.hpp"

namespace gpunn::cpu {

// A gradient of [rows, channels] through ReLU: dy + more (may be null) where the ReLU's result is positive.
struct MaskedRows {
  const float* dy;
  const float* more;

  MaskedRows from(int64_t offset) const { return {dy + offset, more == nullptr ? nullptr : more + offset}; }
};

struct NormalizationKernels {
  int lanes;
  // sums += x, by channel.
  void (*sum)(const float* x, double* sums, ChannelShape shape);
  // squares += (x - mean)^2, by channel.
  void (*squares)(const float* x, const float* mean, double* squares, ChannelShape shape);
  // sums += dy and products += dy * (x - mean), by channel.
  void (*products)(const float* dy, const float* x, const float* mean, double* sums, double* products,
                   ChannelShape shape);
  // y = (x - mean) * factor + beta, plus `other` (may be null), through ReLU; y may be x.
  void (*apply)(const float* x, const float* mean, const float* factor, const float* beta, const float* other,
                bool relu, float* y, ChannelShape shape);
  // to = dy + more (may be null) where y is positive, elsewhere 0; `to` may be dy.
  void (*masked)(const float* dy, const float* more, const float* y, float* to, int64_t n);
  // products of a gradient through a ReLU that gave y. The gradient goes to `masked`, or if that is null, which lanes
  // it has goes to `bits`, a number for each vector of a row.
  void (*masked_products)(MaskedRows gradient, const float* y, float* masked, uint16_t* bits, const float* x,
                          const float* mean, double* sums, double* products, ChannelShape shape);
  // backward of that gradient, by those bits.
  void (*masked_backward)(MaskedRows gradient, const uint16_t* bits, const float* x, const float* mean,
                          const float* factor, const float* offset, const float* slope, float* dx, ChannelShape shape);
  // dx = factor * (dy - offset - (x - mean) * slope).
  void (*backward)(const float* dy, const float* x, const float* mean, const float* factor, const float* offset,
                   const float* slope, float* dx, ChannelShape shape);
};

GPUNN_DECLARE_ISA_VARIANTS(NormalizationKernels, normalization_kernels);

}  // namespace gpunn::cpu
