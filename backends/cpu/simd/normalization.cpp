#include "simd/normalization.hpp"

#include "simd/sum_terms.hpp"
#include "simd/vec.hpp"

namespace gpunn::cpu {
namespace {

using GPUNN_ISA::kLanes;
using GPUNN_ISA::load;
using GPUNN_ISA::load_first;
using GPUNN_ISA::store;
using GPUNN_ISA::store_first;
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

// Channels whose sums are in the first-level cache.
constexpr int64_t kChannelsInSum = 256;

// sums += g and products += g * (x - mean), where gradient(row, at, channel, load) gives g at `at`, load(p) having the
// numbers of a vector's channels at p. Several tensors are read row by row, as so many streams.
template <class Gradient>
inline void sum_products(const float* x, const float* mean, double* sums, double* products, ChannelShape shape,
                         const Gradient& gradient) {
  for (int64_t first = 0; first < shape.rows; first += kRowsInSum) {
    const int64_t end = shape.rows - first < kRowsInSum ? shape.rows : first + kRowsInSum;
    for (int64_t block = 0; block < shape.channels; block += kChannelsInSum) {
      const int64_t channels = shape.channels - block < kChannelsInSum ? shape.channels - block : kChannelsInSum;
      const int64_t vectors = channels / kLanes;
      const int n = static_cast<int>(channels % kLanes);
      Vec sum[kChannelsInSum / kLanes] = {};
      Vec product[kChannelsInSum / kLanes] = {};
      for (int64_t row = first; row < end; ++row) {
        const auto add = [&](int64_t v, auto load_at) {
          const int64_t c = block + v * kLanes;
          const int64_t at = row * shape.channels + c;
          const Vec g = gradient(row, at, c, load_at);
          sum[v] += g;
          product[v] += g * (load_at(x + at) - load_at(mean + c));
        };
        for (int64_t v = 0; v < vectors; ++v) add(v, [](const float* p) { return load(p); });
        if (n > 0) add(vectors, [n](const float* p) { return load_first(p, n); });
      }
      for (int64_t v = 0; v * kLanes < channels; ++v) {
        const int64_t c = block + v * kLanes;
        add_lanes(sums + c, sum[v], v < vectors ? kLanes : n);
        add_lanes(products + c, product[v], v < vectors ? kLanes : n);
      }
    }
  }
}

void row_products(const float* dy, const float* x, const float* mean, double* sums, double* products,
                  ChannelShape shape) {
  sum_products(x, mean, sums, products, shape,
               [dy](int64_t, int64_t at, int64_t, auto load_at) { return load_at(dy + at); });
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
  const auto vector = [&](int64_t i, auto load_at) {
    const Vec gradient = load_at(dy + i) + (more == nullptr ? Vec{} : load_at(more + i));
    return Vec{} < load_at(y + i) ? gradient : Vec{};
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(to + i, vector(i, [](const float* p) { return load(p); }));
  if (i == n) return;
  const int rest = static_cast<int>(n - i);
  store_first(to + i, vector(i, [rest](const float* p) { return load_first(p, rest); }), rest);
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

template <bool add, class Load>
inline Vec gradient_at(const MaskedRows& gradient, int64_t at, const Load& load_at) {
  if constexpr (add) return load_at(gradient.dy + at) + load_at(gradient.more + at);
  return load_at(gradient.dy + at);
}

template <bool add, bool kept>
void masked_row_products(MaskedRows gradient, const float* y, float* masked, uint16_t* bits, const float* x,
                         const float* mean, double* sums, double* products, ChannelShape shape) {
  const int64_t vectors = (shape.channels + kLanes - 1) / kLanes;
  sum_products(x, mean, sums, products, shape, [=](int64_t row, int64_t at, int64_t c, auto load_at) {
    const uint16_t through = GPUNN_ISA::positive_lanes(load_at(y + at));
    const Vec g = GPUNN_ISA::keep_lanes(gradient_at<add>(gradient, at, load_at), through);
    if constexpr (kept) {
      const int64_t n = shape.channels - c;
      n >= kLanes ? store(masked + at, g) : store_first(masked + at, g, static_cast<int>(n));
    } else {
      bits[row * vectors + c / kLanes] = through;
    }
    return g;
  });
}

void masked_products(MaskedRows gradient, const float* y, float* masked, uint16_t* bits, const float* x,
                     const float* mean, double* sums, double* products, ChannelShape shape) {
  const auto run = [&](auto kernel) { kernel(gradient, y, masked, bits, x, mean, sums, products, shape); };
  if (gradient.more == nullptr) {
    masked == nullptr ? run(masked_row_products<false, false>) : run(masked_row_products<false, true>);
  } else {
    masked == nullptr ? run(masked_row_products<true, false>) : run(masked_row_products<true, true>);
  }
}

template <bool add>
void masked_row_backward(MaskedRows gradient, const uint16_t* bits, const float* x, const float* mean,
                         const float* factor, const float* offset, const float* slope, float* dx, ChannelShape shape) {
  const auto vector = [&](int64_t at, int64_t c, auto load_at) {
    const Vec g = GPUNN_ISA::keep_lanes(gradient_at<add>(gradient, at, load_at), *bits++);
    const Vec apart = load_at(x + at) - load_at(mean + c);
    return load_at(factor + c) * (g - load_at(offset + c) - apart * load_at(slope + c));
  };
  for (int64_t row = 0; row < shape.rows; ++row) {
    const int64_t first = row * shape.channels;
    int64_t c = 0;
    for (; c + kLanes <= shape.channels; c += kLanes) {
      store(dx + first + c, vector(first + c, c, [](const float* p) { return load(p); }));
    }
    if (const int n = static_cast<int>(shape.channels - c); n > 0) {
      store_first(dx + first + c, vector(first + c, c, [n](const float* p) { return load_first(p, n); }), n);
    }
  }
}

void masked_backward(MaskedRows gradient, const uint16_t* bits, const float* x, const float* mean, const float* factor,
                     const float* offset, const float* slope, float* dx, ChannelShape shape) {
  const auto run = gradient.more == nullptr ? masked_row_backward<false> : masked_row_backward<true>;
  run(gradient, bits, x, mean, factor, offset, slope, dx, shape);
}

}  // namespace

namespace GPUNN_ISA {
extern const NormalizationKernels normalization_kernels;
const NormalizationKernels normalization_kernels{
    kLanes, sum, squares, products, apply, masked, masked_products, masked_backward, backward};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
