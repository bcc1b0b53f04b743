// Rows are often as short as ten numbers, so the exponentials of a block of rows are taken as one flat loop over memory
// that stays in the first-level cache.
#include "simd/class_scores.hpp"

#include "simd/lanes/exp_rows.hpp"
#include "simd/lanes/maximum.hpp"
#include "simd/lanes/sum.hpp"

namespace gpunn::cpu {
namespace {

void raise_maxima(const float* x, float* most, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) most[i] = larger_of(most[i], x[i]);
}

void add_exponentials(const float* x, const float* most, float* sum, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] += exp_f32(x[i] - most[i]);
}

void add_entropy_terms(const float* x, float weight, const float* most, const float* log_sum, float* total, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) total[i] += weight * (log_sum[i] - (x[i] - most[i]));
}

void entropy_slope(const float* x, const EntropySlope& of, int32_t c, float weight, float* dx, int64_t n) {
  const float *lse = of.lse, *dloss = of.dloss, *hit = of.hit;
  const int32_t* label = of.label;
  // Without smoothing a weight may be infinite.
  if (of.share == 0.0F) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float p = exp_f32(x[i] - lse[i]), one_hot = label[i] == c ? 1.0F : 0.0F;
      const float value = dloss[i] * (hit[i] * (p - one_hot));
      dx[i] = label[i] < 0 ? 0.0F : value;
    }
    return;
  }
  const float share = of.share, weights = of.weights;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float p = exp_f32(x[i] - lse[i]), one_hot = label[i] == c ? 1.0F : 0.0F;
    const float value = dloss[i] * (hit[i] * (p - one_hot) + share * (p * weights - weight));
    dx[i] = label[i] < 0 ? 0.0F : value;
  }
}

void take_larger(const float* x, int32_t c, float* best, int32_t* index, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const bool first_nan = (x[i] != x[i]) & (best[i] == best[i]);
    const bool larger = (x[i] > best[i]) | first_nan;
    best[i] = larger ? x[i] : best[i];
    index[i] = larger ? c : index[i];
  }
}

void exp_sums(const float* x, float* most, float* sum, int64_t rows, int64_t classes) {
  alignas(64) float buffer[kSoftmaxBlock];
  const int64_t step = rows_per_block(classes);
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = smaller(step, rows - first);
    const float* in = x + first * classes;
    for (int64_t row = 0; row < count; ++row) most[first + row] = maximum(in + row * classes, classes);
    if (classes >= kSoftmaxBlock) {
      sum[first] = exp_sum(in, most[first], classes, buffer);
      continue;
    }
    for (int64_t row = 0; row < count; ++row) {
      const float largest = most[first + row];
#pragma omp simd
      for (int64_t c = 0; c < classes; ++c) buffer[row * classes + c] = in[row * classes + c] - largest;
    }
    exp_n(buffer, buffer, count * classes);
    for (int64_t row = 0; row < count; ++row) sum[first + row] = sum_of(buffer + row * classes, classes);
  }
}

float entropy_terms(const float* x, const float* weight, float most, float log_sum, int64_t classes) {
  alignas(64) float buffer[kSoftmaxBlock];
  float total = 0.0F;
  for (int64_t first = 0; first < classes; first += kSoftmaxBlock) {
    const int64_t count = smaller(kSoftmaxBlock, classes - first);
#pragma omp simd
    for (int64_t c = 0; c < count; ++c) buffer[c] = log_sum - (x[first + c] - most);
    if (weight != nullptr) {
#pragma omp simd
      for (int64_t c = 0; c < count; ++c) buffer[c] *= weight[first + c];
    }
    total += sum_of(buffer, count);
  }
  return total;
}

void entropy_row_slopes(const float* x, const EntropySlope& of, const float* weight, float* dx, int64_t rows,
                        int64_t classes) {
  for (int64_t row = 0; row < rows; ++row) {
    const float lse = of.lse[row];
#pragma omp simd
    for (int64_t c = 0; c < classes; ++c) dx[row * classes + c] = x[row * classes + c] - lse;
  }
  exp_n(dx, dx, rows * classes);
  for (int64_t row = 0; row < rows; ++row) {
    float* out = dx + row * classes;
    const int32_t label = of.label[row];
    if (label < 0) {
      for (int64_t c = 0; c < classes; ++c) out[c] = 0.0F;
      continue;
    }
    const float dloss = of.dloss[row], hit = of.hit[row], share = of.share, weights = of.weights;
    const float p_of_label = out[label];
    const float smooth_label = share * (p_of_label * weights - (weight != nullptr ? weight[label] : 1.0F));
    if (share == 0.0F) {
#pragma omp simd
      for (int64_t c = 0; c < classes; ++c) out[c] = dloss * (hit * out[c]);
      out[label] = dloss * (hit * (p_of_label - 1.0F));
      continue;
    }
    if (weight != nullptr) {
#pragma omp simd
      for (int64_t c = 0; c < classes; ++c) out[c] = dloss * (hit * out[c] + share * (out[c] * weights - weight[c]));
    } else {
#pragma omp simd
      for (int64_t c = 0; c < classes; ++c) out[c] = dloss * (hit * out[c] + share * (out[c] * weights - 1.0F));
    }
    out[label] = dloss * (hit * (p_of_label - 1.0F) + smooth_label);
  }
}

int32_t first_largest(const float* x, int64_t classes) {
  const float most = maximum(x, classes);
  int64_t c = 0;
  while (c + 1 < classes && x[c] != most && x[c] == x[c]) ++c;
  return static_cast<int32_t>(c);
}

}  // namespace

namespace GPUNN_ISA {
extern const ClassScoresKernels class_scores_kernels;
const ClassScoresKernels class_scores_kernels{raise_maxima,  add_exponentials,   add_entropy_terms,
                                              entropy_slope, take_larger,        exp_sums,
                                              entropy_terms, entropy_row_slopes, first_largest};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
