#include "simd/normalization.hpp"

#include "simd/lanes/sum_terms.hpp"
#include "simd/lanes/vec.hpp"

namespace gpunn::cpu {
namespace {

using GPUNN_ISA::each_vector;
using GPUNN_ISA::kLanes;
using GPUNN_ISA::max_or_nan;
using GPUNN_ISA::Vec;
using GPUNN_ISA::zero;

// Rows of [rows, channels] whose terms are summed in f32 before they are added in f64: an eighth of the conversions, at
// the errors of sums of eight.
constexpr int64_t kRowsInSum = 8;

using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));

// The first n lanes, or all.
inline void add_lanes(double* sums, Vec terms, int64_t n) {
  if (n < kLanes) {
    for (int i = 0; i < n; ++i) sums[i] += static_cast<double>(terms[i]);
    return;
  }
  Doubles all;
  __builtin_memcpy(&all, sums, sizeof(all));
  all += __builtin_convertvector(terms, Doubles);
  __builtin_memcpy(sums, &all, sizeof(all));
}

// Calls body(first row, rows, channel, load, store) for each kRowsInSum rows of each vector of channels.
template <class Body>
inline void each_rows(ChannelShape shape, const Body& body) {
  for (int64_t row = 0; row < shape.rows; row += kRowsInSum) {
    const int64_t rows = shape.rows - row < kRowsInSum ? shape.rows - row : kRowsInSum;
    each_vector(shape.channels, [&](int64_t c, auto load_at, auto store_at) { body(row, rows, c, load_at, store_at); });
  }
}

template <class T>
void row_sum(const T* x, double* sums, ChannelShape shape) {
  each_rows(shape, [&](int64_t row, int64_t rows, int64_t c, auto load_at, auto) {
    Vec sum{};
    for (int64_t i = row; i < row + rows; ++i) sum += load_at(x + i * shape.channels + c);
    add_lanes(sums + c, sum, shape.channels - c);
  });
}

template <class T>
void row_squares(const T* x, const float* mean, double* squares, ChannelShape shape) {
  each_rows(shape, [&](int64_t row, int64_t rows, int64_t c, auto load_at, auto) {
    const Vec m = load_at(mean + c);
    Vec sum{};
    for (int64_t i = row; i < row + rows; ++i) {
      const Vec apart = load_at(x + i * shape.channels + c) - m;
      sum += apart * apart;
    }
    add_lanes(squares + c, sum, shape.channels - c);
  });
}

// Channels whose sums are in the first-level cache.
constexpr int64_t kChannelsInSum = 256;
// Up to so many channels, kRowsInSum rows are so few lines of memory that the order in which they are read is free.
constexpr int64_t kFewChannels = 64;

// sums += g and products += g * (x - mean), where gradient(row, at, channel, load) gives g at `at`, load(p) having the
// numbers of a vector's channels at p. Of few channels the sums of a vector stay in registers. Otherwise several
// tensors are read row by row, as so many streams.
template <class T, class Gradient>
inline void sum_products(const T* x, const float* mean, double* sums, double* products, ChannelShape shape,
                         const Gradient& gradient) {
  if (shape.channels <= kFewChannels) {
    return each_rows(shape, [&](int64_t first, int64_t rows, int64_t c, auto load_at, auto) {
      const Vec m = load_at(mean + c);
      Vec sum{}, product{};
      for (int64_t row = first; row < first + rows; ++row) {
        const int64_t at = row * shape.channels + c;
        const Vec g = gradient(row, at, c, load_at);
        sum += g;
        product += g * (load_at(x + at) - m);
      }
      add_lanes(sums + c, sum, shape.channels - c);
      add_lanes(products + c, product, shape.channels - c);
    });
  }
  for (int64_t first = 0; first < shape.rows; first += kRowsInSum) {
    const int64_t end = shape.rows - first < kRowsInSum ? shape.rows : first + kRowsInSum;
    for (int64_t block = 0; block < shape.channels; block += kChannelsInSum) {
      const int64_t channels = shape.channels - block < kChannelsInSum ? shape.channels - block : kChannelsInSum;
      Vec sum[kChannelsInSum / kLanes] = {};
      Vec product[kChannelsInSum / kLanes] = {};
      for (int64_t row = first; row < end; ++row) {
        each_vector(channels, [&](int64_t in_block, auto load_at, auto) {
          const int64_t c = block + in_block;
          const int64_t at = row * shape.channels + c;
          const Vec g = gradient(row, at, c, load_at);
          sum[in_block / kLanes] += g;
          product[in_block / kLanes] += g * (load_at(x + at) - load_at(mean + c));
        });
      }
      for (int64_t v = 0; v * kLanes < channels; ++v) {
        const int64_t c = block + v * kLanes;
        add_lanes(sums + c, sum[v], shape.channels - c);
        add_lanes(products + c, product[v], shape.channels - c);
      }
    }
  }
}

template <class T>
void row_products(const T* dy, const T* x, const float* mean, double* sums, double* products, ChannelShape shape) {
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

template <class T, bool add, bool relu>
void apply_rows(const T* x, const float* mean, const float* factor, const float* beta, [[maybe_unused]] const T* other,
                T* y, ChannelShape shape) {
  each_rows(shape, [&](int64_t row, int64_t rows, int64_t c, auto load_at, auto store_at) {
    const Vec m = load_at(mean + c), f = load_at(factor + c), b = load_at(beta + c);
    for (int64_t i = row; i < row + rows; ++i) {
      const int64_t at = i * shape.channels + c;
      Vec made = (load_at(x + at) - m) * f + b;
      if constexpr (add) made += load_at(other + at);
      if constexpr (relu) made = max_or_nan(made, zero());
      store_at(y + at, made);
    }
  });
}

template <class T, bool add, bool relu>
void apply_planes(const T* x, const float* mean, const float* factor, const float* beta,
                  [[maybe_unused]] const T* other, T* y, ChannelShape shape) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    for (int64_t c = 0; c < shape.channels; ++c) {
      const float m = mean[c], f = factor[c], b = beta[c];
#pragma omp simd
      for (int64_t i = 0; i < shape.size; ++i) {
        float made = (x[i] - m) * f + b;
        if constexpr (add) made += other[i];
        if constexpr (relu) made = made < 0.0F ? 0.0F : made;  // this way round a NaN stays
        y[i] = made;
      }
      x += shape.size;
      if constexpr (add) other += shape.size;
      y += shape.size;
    }
  }
}

template <class T>
void apply(const T* x, const float* mean, const float* factor, const float* beta, const T* other, bool relu, T* y,
           ChannelShape shape) {
  const auto run = [&](auto add, auto through) {
    if constexpr (std::is_same_v<T, float>) {
      if (shape.size != 1) return apply_planes<T, add(), through()>(x, mean, factor, beta, other, y, shape);
    }
    apply_rows<T, add(), through()>(x, mean, factor, beta, other, y, shape);
  };
  using Yes = std::true_type;
  using No = std::false_type;
  if (other == nullptr) {
    relu ? run(No(), Yes()) : run(No(), No());
  } else {
    relu ? run(Yes(), Yes()) : run(Yes(), No());
  }
}

template <class T>
void masked(const T* dy, const T* more, const T* y, T* to, int64_t n) {
  each_vector(n, [&](int64_t i, auto load_at, auto store_at) {
    const Vec gradient = load_at(dy + i) + (more == nullptr ? zero() : load_at(more + i));
    store_at(to + i, zero() < load_at(y + i) ? gradient : zero());
  });
}

template <class T>
void row_backward(const T* dy, const T* x, const float* mean, const float* factor, const float* offset,
                  const float* slope, T* dx, ChannelShape shape) {
  each_rows(shape, [&](int64_t row, int64_t rows, int64_t c, auto load_at, auto store_at) {
    const Vec m = load_at(mean + c), f = load_at(factor + c), o = load_at(offset + c), s = load_at(slope + c);
    for (int64_t i = row; i < row + rows; ++i) {
      const int64_t at = i * shape.channels + c;
      store_at(dx + at, f * (load_at(dy + at) - o - (load_at(x + at) - m) * s));
    }
  });
}

void backward(const float* dy, const float* x, const float* mean, const float* factor, const float* offset,
              const float* slope, float* dx, ChannelShape shape) {
  if (shape.size == 1) return row_backward(dy, x, mean, factor, offset, slope, dx, shape);
  for (int64_t row = 0; row < shape.rows; ++row) {
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

template <bool add, class T, class Load>
inline Vec gradient_at(const MaskedRows<T>& gradient, int64_t at, const Load& load_at) {
  if constexpr (add) return load_at(gradient.dy + at) + load_at(gradient.more + at);
  return load_at(gradient.dy + at);
}

template <class T, bool add, bool kept>
void masked_row_products(MaskedRows<T> gradient, const T* y, T* masked, uint16_t* bits, const T* x, const float* mean,
                         double* sums, double* products, ChannelShape shape) {
  const int64_t vectors = (shape.channels + kLanes - 1) / kLanes;
  sum_products(x, mean, sums, products, shape, [=](int64_t row, int64_t at, int64_t c, auto load_at) {
    const uint16_t through = GPUNN_ISA::positive_lanes(load_at(y + at));
    const Vec g = GPUNN_ISA::keep_lanes(gradient_at<add>(gradient, at, load_at), through);
    if constexpr (kept) {
      const int64_t n = shape.channels - c;
      n >= kLanes ? GPUNN_ISA::store(masked + at, g) : GPUNN_ISA::store_first(masked + at, g, static_cast<int>(n));
    } else {
      bits[row * vectors + c / kLanes] = through;
    }
    return g;
  });
}

template <class T>
void masked_products(MaskedRows<T> gradient, const T* y, T* masked, uint16_t* bits, const T* x, const float* mean,
                     double* sums, double* products, ChannelShape shape) {
  const auto run = [&](auto kernel) { kernel(gradient, y, masked, bits, x, mean, sums, products, shape); };
  if (gradient.more == nullptr) {
    masked == nullptr ? run(masked_row_products<T, false, false>) : run(masked_row_products<T, false, true>);
  } else {
    masked == nullptr ? run(masked_row_products<T, true, false>) : run(masked_row_products<T, true, true>);
  }
}

template <class T, bool add>
void masked_row_backward(MaskedRows<T> gradient, const uint16_t* bits, const T* x, const float* mean,
                         const float* factor, const float* offset, const float* slope, T* dx, ChannelShape shape) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    const int64_t first = row * shape.channels;
    each_vector(shape.channels, [&](int64_t c, auto load_at, auto store_at) {
      const Vec g = GPUNN_ISA::keep_lanes(gradient_at<add>(gradient, first + c, load_at), *bits++);
      const Vec apart = load_at(x + first + c) - load_at(mean + c);
      store_at(dx + first + c, load_at(factor + c) * (g - load_at(offset + c) - apart * load_at(slope + c)));
    });
  }
}

template <class T>
void masked_backward(MaskedRows<T> gradient, const uint16_t* bits, const T* x, const float* mean, const float* factor,
                     const float* offset, const float* slope, T* dx, ChannelShape shape) {
  const auto run = gradient.more == nullptr ? masked_row_backward<T, false> : masked_row_backward<T, true>;
  run(gradient, bits, x, mean, factor, offset, slope, dx, shape);
}

}  // namespace

namespace GPUNN_ISA {
extern const NormalizationKernels normalization_kernels;
const NormalizationKernels normalization_kernels{
    kLanes,
    {sum, squares, products, apply<float>, masked<float>, masked_products<float>, masked_backward<float>, backward},
    {row_sum<BFloat16>, row_squares<BFloat16>, row_products<BFloat16>, apply<BFloat16>, masked<BFloat16>,
     masked_products<BFloat16>, masked_backward<BFloat16>, row_backward<BFloat16>}};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
