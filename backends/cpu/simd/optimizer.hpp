// Updates of n neighbouring parameters with one weight decay. ops.h has the formulas.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct SgdStep {
  float lr;
  float momentum;
  float weight_decay;
  bool nesterov;
};

struct AdamStep {
  float lr;
  float beta1;
  float beta2;
  float epsilon;
  bool decoupled;
  float weight_decay;  // of the gradient, where not decoupled: weight_decay * w is added
  float keep;          // w is first multiplied by this: 1 - lr * weight_decay where decoupled, else 1
  float correction1;   // 1 / (1 - beta1^t)
  float correction2;   // 1 / (1 - beta2^t)
};

struct RmspropStep {
  float lr;
  float alpha;
  float epsilon;
  float momentum;
  float weight_decay;
};

struct AdagradStep {
  float lr;
  float epsilon;
  float weight_decay;
};

struct LionStep {
  float lr;
  float beta1;
  float beta2;
  float keep;  // w is first multiplied by this: 1 - lr * weight_decay
};

struct DotProducts {
  double with_x = 0, with_b = 0;
};

struct OptimizerKernels {
  // velocity is not touched where the step has no momentum.
  void (*sgd)(const SgdStep& step, float* w, const float* g, float* velocity, int64_t n);
  void (*adam)(const AdamStep& step, float* w, const float* g, float* m, float* v, int64_t n);
  void (*rmsprop)(const RmspropStep& step, float* w, const float* g, float* square, float* velocity, int64_t n);
  void (*adagrad)(const AdagradStep& step, float* w, const float* g, float* sum, int64_t n);
  void (*lion)(const LionStep& step, float* w, const float* g, float* m, int64_t n);
  // velocity = momentum * velocity + lr * (g + weight_decay * w); w -= velocity.
  void (*lars)(const SgdStep& step, float* w, const float* g, float* velocity, int64_t n);
  double (*sum_of_squares)(const float* x, int64_t n);
  // x = scale * x + factor * other
  void (*scale_and_add)(float scale, float* x, float factor, const float* other, int64_t n);
  // a x and a b
  DotProducts (*dots)(const float* a, const float* x, const float* b, int64_t n);
};

GPUNN_DECLARE_ISA_VARIANTS(OptimizerKernels, optimizer_kernels);

}  // namespace gpunn::cpu
