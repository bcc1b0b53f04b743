// Squared differences and cross-entropies of packed f32.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct LossKernels {
  float (*squared_distance)(const float* x, const float* target, int64_t n);
  // dx = factor * (x - target); dx overlaps neither.
  void (*scaled_difference)(const float* x, const float* target, float factor, float* dx, int64_t n);
  // The sum of target * logp; where target is 0 nothing is added, whatever logp is.
  float (*log_likelihood)(const float* target, const float* logp, int64_t n);
  // dx = factor * (dx * (sum of target) - target), dx being exp(logp) before.
  void (*soft_gradient)(const float* target, float factor, float* dx, int64_t n);
};

GPUNN_DECLARE_ISA_VARIANTS(LossKernels, loss_kernels);

}  // namespace gpunn::cpu
