// Scores of classes in f32: strips of neighbouring positions, one class after the other; or rows of all classes.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

// What the gradient of a cross-entropy needs besides x, for a strip of positions or for rows.
struct EntropySlope {
  const float* lse;
  const float* dloss;
  const float* hit;      // (1 - smoothing) * weight of the label
  const int32_t* label;  // below 0: dx is 0
  float share;           // smoothing / classes
  float weights;         // the sum of the weights of all classes
};

struct ClassScoresKernels {
  // --- n positions of one class ---
  // most = max(most, x). NaN wins.
  void (*raise)(const float* x, float* most, int64_t n);
  // sum += exp(x - most)
  void (*add_exp)(const float* x, const float* most, float* sum, int64_t n);
  // total += weight * (log_sum - (x - most))
  void (*add_terms)(const float* x, float weight, const float* most, const float* log_sum, float* total, int64_t n);
  // dx = dloss * (hit * (p - [label = c]) + share * (p * weights - weight)), p = exp(x - lse); dx may be x.
  void (*slope)(const float* x, const EntropySlope& of, int32_t c, float weight, float* dx, int64_t n);
  // Where x is larger than best, or the first NaN: best = x, index = c.
  void (*take_larger)(const float* x, int32_t c, float* best, int32_t* index, int64_t n);

  // --- rows of `classes` numbers ---
  // The largest of each row, and the sum of exp(x - most).
  void (*exp_sums)(const float* x, float* most, float* sum, int64_t rows, int64_t classes);
  // The sum of weight * (log_sum - (x - most)) over a row. `weight` is null if all are 1.
  float (*terms)(const float* x, const float* weight, float most, float log_sum, int64_t classes);
  void (*row_slopes)(const float* x, const EntropySlope& of, const float* weight, float* dx, int64_t rows,
                     int64_t classes);
  // The index of the first of the largest; of the first NaN if there is one.
  int32_t (*first_largest)(const float* x, int64_t classes);
};

GPUNN_DECLARE_ISA_VARIANTS(ClassScoresKernels, class_scores_kernels);

}  // namespace gpunn::cpu
