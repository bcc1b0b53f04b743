// Between the products of attention: blocks of scores [rows, columns], `stride` apart, become weights, and gradients of
// weights those of scores. Packed f32.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct ScoreBlock {
  int64_t rows;
  int64_t columns;
  int64_t stride;
  float scale;
};

struct AttentionKernels {
  // Softmax of a row that comes in blocks (Milakov and Gimelshein, 2018): scores become exp(scale * score - most), with
  // `most` the largest so far of each row. `sum` goes on; what was summed before by these weights is to be multiplied
  // by `shrink`. Before the first block, most is -inf and sum is 0.
  void (*weigh)(const ScoreBlock& block, float* scores, float* most, float* sum, float* shrink);
  // Each row of x times its factor.
  void (*scale_rows)(float* x, int64_t rows, int64_t columns, int64_t stride, const float* factor);
  // scores become weights exp(scale * score - lse), of 1 at most, and dweights
  // scale * weight * (dweight - along).
  void (*slopes)(const ScoreBlock& block, const float* lse, const float* along, float* scores, float* dweights);
};

GPUNN_DECLARE_ISA_VARIANTS(AttentionKernels, attention_kernels);

}  // namespace gpunn::cpu
