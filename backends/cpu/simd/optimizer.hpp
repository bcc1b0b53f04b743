// Updates of n neighbouring parameters with one weight decay, by the formulas of gpunn/op_formulas.inc.
#pragma once

#include <gpunn/ops.h>

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

// What the formulas call rate, decay, keep and so on. Each update reads what its formula does.
struct UpdateNumbers {
  float rate = 0.0F;
  float decay = 0.0F;
  float keep = 1.0F;
  float correction1 = 1.0F;
  float correction2 = 1.0F;
};

struct DotProducts {
  double with_x = 0, with_b = 0;
};

struct OptimizerKernels {
  // Without momentum the velocity is not used.
  void (*sgd)(const gpunn_sgd_attrs& attrs, UpdateNumbers by, float* w, const float* g, float* velocity, int64_t n);
  void (*adam)(const gpunn_adam_attrs& attrs, UpdateNumbers by, float* w, const float* g, float* m, float* v,
               int64_t n);
  void (*rmsprop)(const gpunn_rmsprop_attrs& attrs, UpdateNumbers by, float* w, const float* g, float* square,
                  float* velocity, int64_t n);
  void (*adagrad)(const gpunn_adagrad_attrs& attrs, UpdateNumbers by, float* w, const float* g, float* sum, int64_t n);
  void (*lion)(const gpunn_lion_attrs& attrs, UpdateNumbers by, float* w, const float* g, float* m, int64_t n);
  void (*lars)(const gpunn_lars_attrs& attrs, UpdateNumbers by, float* w, const float* g, float* velocity, int64_t n);
  double (*sum_of_squares)(const float* x, int64_t n);
  // x = scale * x + factor * other
  void (*scale_and_add)(float scale, float* x, float factor, const float* other, int64_t n);
  void (*scale)(float factor, const float* x, float* y, int64_t n);
  // y += factor * sign(x), the sign of 0 (and NaN) being 0.
  void (*add_sign)(float factor, const float* x, float* y, int64_t n);
  // a x and a b
  DotProducts (*dots)(const float* a, const float* x, const float* b, int64_t n);
};

GPUNN_DECLARE_ISA_VARIANTS(OptimizerKernels, optimizer_kernels);

}  // namespace gpunn::cpu
