#include "simd/attention.hpp"

#include "simd/lanes/exp.hpp"
#include "simd/lanes/maximum.hpp"
#include "simd/lanes/sum.hpp"

namespace gpunn::cpu {
namespace {

void weigh(const ScoreBlock& block, float* scores, float* most, float* sum, float* shrink) {
  const float scale = block.scale;
  for (int64_t row = 0; row < block.rows; ++row) {
    float* x = scores + row * block.stride;
#pragma omp simd
    for (int64_t j = 0; j < block.columns; ++j) x[j] *= scale;
    const float found = larger_of(most[row], maximum(x, block.columns));
    // Scores of nothing but -inf so far have weights of 0.
    const float from = found == -__builtin_inff() ? 0.0F : found;
#pragma omp simd
    for (int64_t j = 0; j < block.columns; ++j) x[j] = exp_f32(x[j] - from);
    shrink[row] = exp_f32(most[row] - from);
    sum[row] = sum[row] * shrink[row] + sum_of(x, block.columns);
    most[row] = found;
  }
}

void scale_rows(float* x, int64_t rows, int64_t columns, int64_t stride, const float* factor) {
  for (int64_t row = 0; row < rows; ++row) {
    float* out = x + row * stride;
    const float by = factor[row];
    if (by == 1.0F) continue;
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) out[j] *= by;
  }
}

void slopes(const ScoreBlock& block, const float* lse, const float* along, float* scores, float* dweights) {
  const float scale = block.scale;
  for (int64_t row = 0; row < block.rows; ++row) {
    float* weight = scores + row * block.stride;
    float* slope = dweights + row * block.stride;
    const float from = lse[row], mean = along[row];
#pragma omp simd
    for (int64_t j = 0; j < block.columns; ++j) {
      const float exponent = weight[j] * scale - from;
      const float w = exp_f32(exponent > 0.0F ? 0.0F : exponent);
      weight[j] = w;
      slope[j] = scale * w * (slope[j] - mean);
    }
  }
}

}  // namespace

namespace GPUNN_ISA {
extern const AttentionKernels attention_kernels;
const AttentionKernels attention_kernels{weigh, scale_rows, slopes};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
