#include "simd/normalization.hpp"

#include "simd/sum_terms.hpp"

namespace gpunn::cpu {
namespace {

void sum(const float* x, double* sums, ChannelShape shape) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (shape.size == 1) {
#pragma omp simd
      for (int64_t c = 0; c < shape.channels; ++c) sums[c] += static_cast<double>(x[c]);
      x += shape.channels;
      continue;
    }
    for (int64_t c = 0; c < shape.channels; ++c) {
      sums[c] += sum_terms(shape.size, [x](int64_t i) { return x[i]; });
      x += shape.size;
    }
  }
}

void squares(const float* x, const float* mean, double* squares, ChannelShape shape) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (shape.size == 1) {
#pragma omp simd
      for (int64_t c = 0; c < shape.channels; ++c) {
        const float from_mean = x[c] - mean[c];
        squares[c] += static_cast<double>(from_mean * from_mean);
      }
      x += shape.channels;
      continue;
    }
    for (int64_t c = 0; c < shape.channels; ++c) {
      const float m = mean[c];
      squares[c] += sum_terms(shape.size, [x, m](int64_t i) { return (x[i] - m) * (x[i] - m); });
      x += shape.size;
    }
  }
}

void products(const float* dy, const float* x, const float* mean, double* sums, double* products, ChannelShape shape) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (shape.size == 1) {
#pragma omp simd
      for (int64_t c = 0; c < shape.channels; ++c) {
        sums[c] += static_cast<double>(dy[c]);
        products[c] += static_cast<double>(dy[c] * (x[c] - mean[c]));
      }
      dy += shape.channels;
      x += shape.channels;
      continue;
    }
    for (int64_t c = 0; c < shape.channels; ++c) {
      const float m = mean[c];
      sums[c] += sum_terms(shape.size, [dy](int64_t i) { return dy[i]; });
      products[c] += sum_terms(shape.size, [dy, x, m](int64_t i) { return dy[i] * (x[i] - m); });
      dy += shape.size;
      x += shape.size;
    }
  }
}

void apply(const float* x, const float* mean, const float* factor, const float* beta, float* y, ChannelShape shape) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (shape.size == 1) {
#pragma omp simd
      for (int64_t c = 0; c < shape.channels; ++c) y[c] = (x[c] - mean[c]) * factor[c] + beta[c];
      x += shape.channels;
      y += shape.channels;
      continue;
    }
    for (int64_t c = 0; c < shape.channels; ++c) {
      const float m = mean[c], f = factor[c], b = beta[c];
#pragma omp simd
      for (int64_t i = 0; i < shape.size; ++i) y[i] = (x[i] - m) * f + b;
      x += shape.size;
      y += shape.size;
    }
  }
}

void backward(const float* dy, const float* x, const float* mean, const float* factor, const float* offset,
              const float* slope, float* dx, ChannelShape shape) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (shape.size == 1) {
#pragma omp simd
      for (int64_t c = 0; c < shape.channels; ++c) {
        dx[c] = factor[c] * (dy[c] - offset[c] - (x[c] - mean[c]) * slope[c]);
      }
      dy += shape.channels;
      x += shape.channels;
      dx += shape.channels;
      continue;
    }
    for (int64_t c = 0; c < shape.channels; ++c) {
      const float m = mean[c], f = factor[c], o = offset[c], s = slope[c];
#pragma omp simd
      for (int64_t i = 0; i < shape.size; ++i) dx[i] = f * (dy[i] - o - (x[i] - m) * s);
      dy += shape.size;
      x += shape.size;
      dx += shape.size;
    }
  }
}

}  // namespace

namespace GPUNN_ISA {
extern const NormalizationKernels normalization_kernels;
const NormalizationKernels normalization_kernels{sum, squares, products, apply, backward};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
