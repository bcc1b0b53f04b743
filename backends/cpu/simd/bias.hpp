#pragma once

#include "isa.hpp"
#include "simd/images/channel_shape.hpp"

namespace gpunn::cpu {

struct BiasKernels {
  // y = x + bias; y may be x.
  void (*add)(const float* x, const float* bias, float* y, ChannelShape shape);
  // sums[channels] = the sum of dy by channel.
  void (*sum)(const float* dy, float* sums, ChannelShape shape);
  // dx = y > 0 ? dy : 0 and sums[channels] = the sum of dx by channel; dx may be dy.
  void (*relu_backward)(const float* dy, const float* y, float* dx, float* sums, ChannelShape shape);
};

GPUNN_DECLARE_ISA_VARIANTS(BiasKernels, bias_kernels);

}  // namespace gpunn::cpu
