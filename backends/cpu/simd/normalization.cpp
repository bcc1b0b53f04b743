#include "simd/normalization.hpp"

#include "simd/sum_terms.hpp"

namespace gpunn::cpu {
namespace {

// Rows of [rows, channels] whose terms are summed in f32 before they are added in f64: an eighth of the conversions, at
// the errors of sums of eight.
constexpr int64_t kRowsInSum = 8;

// sums[c] += the sum over the rows of term(i), i being where a row's channel c is, in f32 by kRowsInSum rows.
template <class Term>
inline void add_rows(ChannelShape shape, double* sums, Term term) {
  for (int64_t row = 0; row < shape.rows; row += kRowsInSum) {
    const int64_t first = row * shape.channels;
    if (shape.rows - row >= kRowsInSum) {
#pragma omp simd
      for (int64_t c = 0; c < shape.channels; ++c) {
        float sum = 0;
        for (int64_t i = 0; i < kRowsInSum; ++i) sum += term(c, first + i * shape.channels + c);
        sums[c] += static_cast<double>(sum);
      }
    } else {
      for (int64_t i = row; i < shape.rows; ++i) {
#pragma omp simd
        for (int64_t c = 0; c < shape.channels; ++c) sums[c] += static_cast<double>(term(c, i * shape.channels + c));
      }
    }
  }
}

void sum(const float* x, double* sums, ChannelShape shape) {
  if (shape.size == 1) return add_rows(shape, sums, [x](int64_t, int64_t i) { return x[i]; });
  for (int64_t row = 0; row < shape.rows; ++row) {
    for (int64_t c = 0; c < shape.channels; ++c) {
      sums[c] += sum_terms(shape.size, [x](int64_t i) { return x[i]; });
      x += shape.size;
    }
  }
}

void squares(const float* x, const float* mean, double* squares, ChannelShape shape) {
  if (shape.size == 1) {
    return add_rows(shape, squares, [x, mean](int64_t c, int64_t i) { return (x[i] - mean[c]) * (x[i] - mean[c]); });
  }
  for (int64_t row = 0; row < shape.rows; ++row) {
    for (int64_t c = 0; c < shape.channels; ++c) {
      const float m = mean[c];
      squares[c] += sum_terms(shape.size, [x, m](int64_t i) { return (x[i] - m) * (x[i] - m); });
      x += shape.size;
    }
  }
}

void products(const float* dy, const float* x, const float* mean, double* sums, double* products, ChannelShape shape) {
  if (shape.size == 1) {
    for (int64_t row = 0; row < shape.rows; row += kRowsInSum) {
      const int64_t rows = shape.rows - row < kRowsInSum ? shape.rows - row : kRowsInSum;
      const float* d = dy + row * shape.channels;
      const float* xs = x + row * shape.channels;
#pragma omp simd
      for (int64_t c = 0; c < shape.channels; ++c) {
        float sum = 0;
        float product = 0;
        for (int64_t i = 0; i < rows; ++i) {
          sum += d[i * shape.channels + c];
          product += d[i * shape.channels + c] * (xs[i * shape.channels + c] - mean[c]);
        }
        sums[c] += static_cast<double>(sum);
        products[c] += static_cast<double>(product);
      }
    }
    return;
  }
  for (int64_t row = 0; row < shape.rows; ++row) {
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
