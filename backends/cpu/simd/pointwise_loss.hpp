// Sums over a row of losses of each element, and their gradients. Packed f32; dx overlaps neither input.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct PointwiseLossKernels {
  float (*bce)(const float* x, const float* target, int64_t n);
  // dx = factor * (sigmoid(x) - target)
  void (*bce_gradient)(const float* x, const float* target, float factor, float* dx, int64_t n);
  float (*huber)(const float* x, const float* target, float delta, int64_t n);
  // dx = factor * (x - target held within -delta and delta)
  void (*huber_gradient)(const float* x, const float* target, float delta, float factor, float* dx, int64_t n);
  // The sum of max(0, x - floor)^power, of power 1 or 2.
  float (*hinge)(const float* x, float floor, int32_t power, int64_t n);
  // dx = factor times its slope; returns the sum of dx.
  float (*hinge_gradient)(const float* x, float floor, int32_t power, float factor, float* dx, int64_t n);
};

GPUNN_DECLARE_ISA_VARIANTS(PointwiseLossKernels, pointwise_loss_kernels);

}  // namespace gpunn::cpu
