#include "simd/optimizer.hpp"

#include "simd/lanes/formulas.hpp"

namespace gpunn::cpu {
namespace {

// In the loops below the formula and the numbers are copies, which can't alias the vectors.

void sgd(const gpunn_sgd_attrs& attrs, UpdateNumbers by, float* w, const float* g, float* velocity, int64_t n) {
  formulas::Formula<GPUNN_OP_SGD_UPDATE> update{attrs};
  if (attrs.momentum == 0.0F) {
    update.attrs.momentum = 0.0F;
    float none = 0.0F;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) update(w[i], g[i], none, by.rate, by.decay);
  } else if (attrs.nesterov != 0) {
    update.attrs.nesterov = 1;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) update(w[i], g[i], velocity[i], by.rate, by.decay);
  } else {
    update.attrs.nesterov = 0;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) update(w[i], g[i], velocity[i], by.rate, by.decay);
  }
}

void adam(const gpunn_adam_attrs& attrs, UpdateNumbers by, float* w, const float* g, float* m, float* v, int64_t n) {
  const formulas::Formula<GPUNN_OP_ADAM_UPDATE> update{attrs};
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    update(w[i], g[i], m[i], v[i], by.rate, by.decay, by.keep, by.correction1, by.correction2);
  }
}

void rmsprop(const gpunn_rmsprop_attrs& attrs, UpdateNumbers by, float* w, const float* g, float* square,
             float* velocity, int64_t n) {
  formulas::Formula<GPUNN_OP_RMSPROP_UPDATE> update{attrs};
  if (attrs.momentum == 0.0F) {
    update.attrs.momentum = 0.0F;
    float none = 0.0F;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) update(w[i], g[i], square[i], none, by.rate, by.decay);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) update(w[i], g[i], square[i], velocity[i], by.rate, by.decay);
  }
}

void adagrad(const gpunn_adagrad_attrs& attrs, UpdateNumbers by, float* w, const float* g, float* sum, int64_t n) {
  const formulas::Formula<GPUNN_OP_ADAGRAD_UPDATE> update{attrs};
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) update(w[i], g[i], sum[i], by.rate, by.decay);
}

void lion(const gpunn_lion_attrs& attrs, UpdateNumbers by, float* w, const float* g, float* m, int64_t n) {
  const formulas::Formula<GPUNN_OP_LION_UPDATE> update{attrs};
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) update(w[i], g[i], m[i], by.rate, by.keep);
}

void lars(const gpunn_lars_attrs& attrs, UpdateNumbers by, float* w, const float* g, float* velocity, int64_t n) {
  const formulas::Formula<GPUNN_OP_LARS_UPDATE> update{attrs};
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) update(w[i], g[i], velocity[i], by.rate, by.decay);
}

double layer_sum_of_squares(const float* x, int64_t n) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

void scale_and_add(float scale, float* x, float factor, const float* other, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] = scale * x[i] + factor * other[i];
}

void times(float factor, const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

void add_sign(float factor, const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += x[i] > 0.0F ? factor : x[i] < 0.0F ? -factor : 0.0F;
}

DotProducts dots(const float* a, const float* x, const float* b, int64_t n) {
  double with_x = 0.0, with_b = 0.0;
#pragma omp simd reduction(+ : with_x, with_b)
  for (int64_t i = 0; i < n; ++i) {
    const auto factor = static_cast<double>(a[i]);
    with_x += factor * static_cast<double>(x[i]);
    with_b += factor * static_cast<double>(b[i]);
  }
  return {with_x, with_b};
}

}  // namespace

namespace GPUNN_ISA {
extern const OptimizerKernels optimizer_kernels;
const OptimizerKernels optimizer_kernels{sgd,           adam,  rmsprop,  adagrad, lion, lars, layer_sum_of_squares,
                                         scale_and_add, times, add_sign, dots};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
