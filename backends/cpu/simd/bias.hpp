// Loops over x[rows, channels, size]: `size` is the product of the dimensions after the channel's, 1 for [N,C].
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct BiasShape {
  int64_t rows;
  int64_t channels;
  int64_t size;
};

struct BiasKernels {
  // y = x + bias; y may be x.
  void (*add)(const float* x, const float* bias, float* y, BiasShape shape);
  // sums[channels] = the sum of dy by channel.
  void (*sum)(const float* dy, float* sums, BiasShape shape);
  // dx = y > 0 ? dy : 0 and sums[channels] = the sum of dx by channel; dx may be dy.
  void (*relu_backward)(const float* dy, const float* y, float* dx, float* sums, BiasShape shape);
};

GPUNN_DECLARE_ISA_VARIANTS(BiasKernels, bias_kernels);

}  // namespace gpunn::cpu
