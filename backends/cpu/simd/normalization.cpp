#include "simd/normalization.hpp"

#include "simd/sum_terms.hpp"
#include "simd/vec.hpp"

namespace gpunn::cpu {
namespace {

using GPUNN_ISA::kLanes;
using GPUNN_ISA::load;
using GPUNN_ISA::load_first;
using GPUNN_ISA::Vec;

// Rows of [rows, channels] whose terms are summed in f32 before they are added in f64: an eighth of the conversions, at
// the errors of sums of eight.
constexpr int64_t kRowsInSum = 8;

using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));

inline void add_lanes(double* sums, Vec terms, int n) {
  if (n < kLanes) {
    for (int i = 0; i < n; ++i) sums[i] += static_cast<double>(terms[i]);
    return;
  }
  Doubles all;
  __builtin_memcpy(&all, sums, sizeof(all));
  all += __builtin_convertvector(terms, Doubles);
  __builtin_memcpy(sums, &all, sizeof(all));
}

// Calls body(first row, rows, channel, n, load) for each kRowsInSum rows of each vector of channels; load(p) has the
// vector's n channels at p.
template <class Body>
inline void each_rows(ChannelShape shape, const Body& body) {
  for (int64_t row = 0; row < shape.rows; row += kRowsInSum) {
    const int64_t rows = shape.rows - row < kRowsInSum ? shape.rows - row : kRowsInSum;
    int64_t c = 0;
    for (; c + kLanes <= shape.channels; c += kLanes) {
      body(row, rows, c, kLanes, [](const float* p) { return load(p); });
    }
    const int n = static_cast<int>(shape.channels - c);
    if (n > 0) body(row, rows, c, n, [n](const float* p) { return load_first(p, n); });
  }
}

void row_sum(const float* x, double* sums, ChannelShape shape) {
  each_rows(shape, [&](int64_t row, int64_t rows, int64_t c, int n, auto load_at) {
    Vec sum{};
    for (int64_t i = row; i < row + rows; ++i) sum += load_at(x + i * shape.channels + c);
    add_lanes(sums + c, sum, n);
  });
}

void row_squares(const float* x, const float* mean, double* squares, ChannelShape shape) {
  each_rows(shape, [&](int64_t row, int64_t rows, int64_t c, int n, auto load_at) {
    const Vec m = load_at(mean + c);
    Vec sum{};
    for (int64_t i = row; i < row + rows; ++i) {
      const Vec apart = load_at(x + i * shape.channels + c) - m;
      sum += apart * apart;
    }
    add_lanes(squares + c, sum, n);
  });
}

void row_products(const float* dy, const float* x, const float* mean, double* sums, double* products,
                  ChannelShape shape) {
  each_rows(shape, [&](int64_t row, int64_t rows, int64_t c, int n, auto load_at) {
    const Vec m = load_at(mean + c);
    Vec sum{};
    Vec product{};
    for (int64_t i = row; i < row + rows; ++i) {
      const Vec gradient = load_at(dy + i * shape.channels + c);
      sum += gradient;
      product += gradient * (load_at(x + i * shape.channels + c) - m);
    }
    add_lanes(sums + c, sum, n);
    add_lanes(products + c, product, n);
  });
}

void sum(const float* x, double* sums, ChannelShape shape) {
  if (shape.size == 1) return row_sum(x, sums, shape);
  for (int64_t row = 0; row < shape.rows; ++row) {
    for (int64_t c = 0; c < shape.channels; ++c) {
      sums[c] += sum_terms(shape.size, [x](int64_t i) { return x[i]; });
      x += shape.size;
    }
  }
}

void squares(const float* x, const float* mean, double* squares, ChannelShape shape) {
  if (shape.size == 1) return row_squares(x, mean, squares, shape);
  for (int64_t row = 0; row < shape.rows; ++row) {
    for (int64_t c = 0; c < shape.channels; ++c) {
      const float m = mean[c];
      squares[c] += sum_terms(shape.size, [x, m](int64_t i) { return (x[i] - m) * (x[i] - m); });
      x += shape.size;
    }
  }
}

void products(const float* dy, const float* x, const float* mean, double* sums, double* products, ChannelShape shape) {
  if (shape.size == 1) return row_products(dy, x, mean, sums, products, shape);
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

template <bool add, bool relu>
inline float applied(float x, float mean, float factor, float beta, [[maybe_unused]] float other) {
  float y = (x - mean) * factor + beta;
  if constexpr (add) y += other;
  if constexpr (relu) y = y < 0.0F ? 0.0F : y;  // this way round a NaN stays
  return y;
}

template <bool add, bool relu>
void apply_as(const float* x, const float* mean, const float* factor, const float* beta, const float* other, float* y,
              ChannelShape shape) {
  if constexpr (!add) other = x;
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (shape.size == 1) {
#pragma omp simd
      for (int64_t c = 0; c < shape.channels; ++c) {
        y[c] = applied<add, relu>(x[c], mean[c], factor[c], beta[c], other[c]);
      }
      x += shape.channels;
      other += shape.channels;
      y += shape.channels;
      continue;
    }
    for (int64_t c = 0; c < shape.channels; ++c) {
      const float m = mean[c], f = factor[c], b = beta[c];
#pragma omp simd
      for (int64_t i = 0; i < shape.size; ++i) y[i] = applied<add, relu>(x[i], m, f, b, other[i]);
      x += shape.size;
      other += shape.size;
      y += shape.size;
    }
  }
}

void apply(const float* x, const float* mean, const float* factor, const float* beta, const float* other, bool relu,
           float* y, ChannelShape shape) {
  if (other == nullptr) {
    relu ? apply_as<false, true>(x, mean, factor, beta, x, y, shape)
         : apply_as<false, false>(x, mean, factor, beta, x, y, shape);
  } else {
    relu ? apply_as<true, true>(x, mean, factor, beta, other, y, shape)
         : apply_as<true, false>(x, mean, factor, beta, other, y, shape);
  }
}

void masked(const float* dy, const float* more, const float* y, float* to, int64_t n) {
  if (more == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] = 0.0F < y[i] ? dy[i] : 0.0F;
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] = 0.0F < y[i] ? dy[i] + more[i] : 0.0F;
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
const NormalizationKernels normalization_kernels{sum, squares, products, apply, masked, backward};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
