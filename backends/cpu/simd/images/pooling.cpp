// Packed images: a vector of outputs at a time, from two vectors of each of two rows. Rows are short (14 and 5 outputs
// in LeNet-5), so that most vectors are partial ones.
#include "simd/images/pooling.hpp"

#include "simd/lanes/vec.hpp"

namespace gpunn::cpu::GPUNN_ISA {

static GPUNN_ALWAYS_INLINE auto is_nan(Vec value) { return value != value; }  // NOLINT(misc-redundant-expression)

// Where two vectors of neighbours have changed their odd and even lanes (exchange<1>), lane 2 k has the pair k, and
// lane 2 k + 1 the pair k + kLanes / 2. Brings numbers, one a pair, into that order, and back.
static GPUNN_ALWAYS_INLINE Vec as_pairs(Vec v) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(v, v, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
#elif defined(__AVX2__)
  return __builtin_shufflevector(v, v, 0, 4, 1, 5, 2, 6, 3, 7);
#else
  return __builtin_shufflevector(v, v, 0, 2, 1, 3);
#endif
}

static GPUNN_ALWAYS_INLINE Vec in_order(Vec v) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(v, v, 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
#elif defined(__AVX2__)
  return __builtin_shufflevector(v, v, 0, 2, 4, 6, 1, 3, 5, 7);
#else
  return __builtin_shufflevector(v, v, 0, 2, 1, 3);
#endif
}

// The left and the right numbers of n pairs.
struct Pairs {
  Vec left;
  Vec right;
};

static GPUNN_ALWAYS_INLINE Pairs load_pairs(const float* p, int n) {
  Pairs pairs{zero(), zero()};
  if (2 * n <= kLanes) {
    pairs.left = load_first(p, 2 * n);
  } else {
    pairs = {load(p), load_first(p + kLanes, 2 * n - kLanes)};
  }
  exchange<1>(pairs.left, pairs.right);
  return pairs;
}

static GPUNN_ALWAYS_INLINE void store_pairs(float* p, Pairs pairs, int n) {
  exchange<1>(pairs.left, pairs.right);
  if (2 * n <= kLanes) {
    store_first(p, pairs.left, 2 * n);
  } else {
    store(p, pairs.left);
    store_first(p + kLanes, pairs.right, 2 * n - kLanes);
  }
}

// NaN wins, also over a later number: a comparison with NaN is false.
static GPUNN_ALWAYS_INLINE Vec larger_of(Vec best, Vec x) {
  const Vec larger = x > best ? x : best;
  return is_nan(x) ? x : larger;
}

// Takes the gradient that is left where x is the window's maximum: where it equals y, or is NaN, since y then is NaN
// too.
static GPUNN_ALWAYS_INLINE Vec take(Vec x, Vec y, Vec& left) {
  const auto here = (x == y) | is_nan(x);
  const Vec taken = here ? left : zero();
  left = here ? zero() : left;
  return taken;
}

// Calls body(first output, outputs) for vectors of a row of outputs.
template <class Body>
static GPUNN_ALWAYS_INLINE void each_output(int64_t columns, const Body& body) {
  int64_t q = 0;
  for (; q + kLanes <= columns; q += kLanes) body(q, kLanes);
  if (q < columns) body(q, static_cast<int>(columns - q));
}

static void largest_of_2x2_forward(const float* x, float* y, int64_t planes, int64_t height, int64_t width) {
  const int64_t columns = width / 2;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t p = 0; p < height / 2; ++p) {
      const float* top = x + 2 * p * width;
      each_output(columns, [&](int64_t q, int n) {
        const Pairs above = load_pairs(top + 2 * q, n), below = load_pairs(top + width + 2 * q, n);
        const Vec most = larger_of(larger_of(larger_of(above.left, above.right), below.left), below.right);
        store_first(y + q, in_order(most), n);
      });
      y += columns;
    }
    x += height * width;
  }
}

static void largest_of_2x2_backward(const float* dy, const float* x, const float* y, float* dx, int64_t planes,
                                    int64_t height, int64_t width) {
  const int64_t columns = width / 2;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t p = 0; p < height / 2; ++p) {
      const float* top = x + 2 * p * width;
      float* dtop = dx + 2 * p * width;
      each_output(columns, [&](int64_t q, int n) {
        const Vec most = as_pairs(load_first(y + q, n));
        Vec rest = as_pairs(load_first(dy + q, n));
        for (int64_t row = 0; row <= width; row += width) {
          const Pairs pairs = load_pairs(top + row + 2 * q, n);
          Pairs taken{take(pairs.left, most, rest), zero()};
          taken.right = take(pairs.right, most, rest);
          store_pairs(dtop + row + 2 * q, taken, n);
        }
      });
      if (width % 2 != 0) dtop[width - 1] = dtop[2 * width - 1] = 0.0F;
      dy += columns;
      y += columns;
    }
    for (int64_t i = height / 2 * 2 * width; i < height * width; ++i) dx[i] = 0.0F;
    x += height * width;
    dx += height * width;
  }
}

template <class T>
static void pixel_largest(const T* x, const PixelWindow& w, int64_t channels, T* y) {
  each_vector(channels, [&](int64_t c, auto load_at, auto store_at) {
    Vec best = load_at(x + c);
    for (int64_t i = 0; i < w.rows; ++i) {
      for (int64_t j = 0; j < w.columns; ++j) {
        best = larger_of(best, load_at(x + c + i * w.row + j * w.pixel));
      }
    }
    store_at(y + c, best);
  });
}

template <class T>
static void pixel_to_largest(const T* dy, const T* x, const T* y, const PixelWindow& w, int64_t channels, T* dx) {
  each_vector(channels, [&](int64_t c, auto load_at, auto store_at) {
    const Vec best = load_at(y + c);
    Vec left = load_at(dy + c);
    for (int64_t i = 0; i < w.rows; ++i) {
      for (int64_t j = 0; j < w.columns; ++j) {
        const int64_t at = c + i * w.row + j * w.pixel;
        store_at(dx + at, load_at(dx + at) + take(load_at(x + at), best, left));
      }
    }
  });
}

template <class T>
static void pixel_average(const T* x, const PixelWindow& w, int64_t channels, float divisor, T* y) {
  each_vector(channels, [&](int64_t c, auto load_at, auto store_at) {
    Vec sum = zero();
    for (int64_t i = 0; i < w.rows; ++i) {
      for (int64_t j = 0; j < w.columns; ++j) sum += load_at(x + c + i * w.row + j * w.pixel);
    }
    store_at(y + c, sum / broadcast(divisor));
  });
}

template <class T>
static void pixel_to_all(const T* dy, const PixelWindow& w, int64_t channels, float divisor, T* dx) {
  each_vector(channels, [&](int64_t c, auto load_at, auto store_at) {
    const Vec share = load_at(dy + c) / broadcast(divisor);
    for (int64_t i = 0; i < w.rows; ++i) {
      for (int64_t j = 0; j < w.columns; ++j) {
        T* at = dx + c + i * w.row + j * w.pixel;
        store_at(at, load_at(at) + share);
      }
    }
  });
}

// 64 channels at a time, which a vector holds, or a few. 0 is below no number.
static void byte_largest(const uint8_t* x, const PixelWindow& w, int64_t channels, uint8_t* y) {
  constexpr int kPiece = 64;
  for (int64_t c = 0; c < channels; c += kPiece) {
    const int n = static_cast<int>(channels - c < kPiece ? channels - c : kPiece);
    uint8_t best[kPiece] = {};
    for (int64_t i = 0; i < w.rows; ++i) {
      for (int64_t j = 0; j < w.columns; ++j) {
        const uint8_t* from = x + c + i * w.row + j * w.pixel;
        if (n == kPiece) {
#pragma omp simd
          for (int k = 0; k < kPiece; ++k) best[k] = from[k] > best[k] ? from[k] : best[k];
        } else {
          for (int k = 0; k < n; ++k) best[k] = from[k] > best[k] ? from[k] : best[k];
        }
      }
    }
    __builtin_memcpy(y + c, best, static_cast<std::size_t>(n));
  }
}

extern const PoolingKernels pooling_kernels;
const PoolingKernels pooling_kernels{
    largest_of_2x2_forward,
    largest_of_2x2_backward,
    {pixel_largest<float>, pixel_to_largest<float>, pixel_average<float>, pixel_to_all<float>},
    {pixel_largest<BFloat16>, pixel_to_largest<BFloat16>, pixel_average<BFloat16>, pixel_to_all<BFloat16>},
    byte_largest};
}  // namespace gpunn::cpu::GPUNN_ISA
