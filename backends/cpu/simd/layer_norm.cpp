#include "simd/layer_norm.hpp"

#include "simd/lanes/sum_terms.hpp"

namespace gpunn::cpu {
namespace {

void forward(const float* x, const float* gamma, const float* beta, float epsilon, float* y, float* mean, float* rstd,
             int64_t rows, int64_t columns) {
  const auto n = static_cast<double>(columns);
  for (int64_t row = 0; row < rows; ++row) {
    const auto m = static_cast<float>(sum_terms(columns, [x](int64_t i) { return x[i]; }) / n);
    const double squares = sum_terms(columns, [x, m](int64_t i) { return (x[i] - m) * (x[i] - m); });
    const auto inverse = static_cast<float>(1.0 / __builtin_sqrt(squares / n + static_cast<double>(epsilon)));
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) y[i] = (x[i] - m) * inverse * gamma[i] + beta[i];
    mean[row] = m;
    rstd[row] = inverse;
    x += columns;
    y += columns;
  }
}

void backward(const float* dy, const float* x, const float* gamma, const float* mean, const float* rstd, float* dx,
              int64_t rows, int64_t columns) {
  const auto n = static_cast<double>(columns);
  for (int64_t row = 0; row < rows; ++row) {
    const float m = mean[row], inverse = rstd[row];
    const double sum = sum_terms(columns, [=](int64_t i) { return dy[i] * gamma[i]; });
    const double product = sum_terms(columns, [=](int64_t i) { return dy[i] * gamma[i] * (x[i] - m); });
    const auto offset = static_cast<float>(sum / n);
    const auto slope = static_cast<float>(product / n * static_cast<double>(inverse) * static_cast<double>(inverse));
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) dx[i] = inverse * (dy[i] * gamma[i] - offset - (x[i] - m) * slope);
    dy += columns;
    x += columns;
    dx += columns;
  }
}

void columns(const float* dy, const float* x, const float* mean, const float* rstd, double* dgamma, double* dbeta,
             int64_t rows, int64_t stride, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    const float m = mean[row], inverse = rstd[row];
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      dgamma[i] += static_cast<double>(dy[i] * ((x[i] - m) * inverse));
      dbeta[i] += static_cast<double>(dy[i]);
    }
    dy += stride;
    x += stride;
  }
}

}  // namespace

namespace GPUNN_ISA {
extern const LayerNormKernels layer_norm_kernels;
const LayerNormKernels layer_norm_kernels{forward, backward, columns};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
