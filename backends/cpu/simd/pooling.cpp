// Rows are short (12 and 4 outputs in LeNet-5), so a row is done in blocks of a fixed width, the last of which overlaps
// its neighbour: recomputing a few outputs is cheaper than a scalar tail.
#include "simd/pooling.hpp"

#include "simd/maximum.hpp"
#include "simd/vec.hpp"

namespace gpunn::cpu {
namespace {

template <int block>
inline void forward_block(const float* top, const float* bottom, float* y) {
#pragma omp simd
  for (int i = 0; i < block; ++i) {
    y[i] = larger_of(larger_of(larger_of(top[2 * i], top[2 * i + 1]), bottom[2 * i]), bottom[2 * i + 1]);
  }
}

// Takes the gradient that is left where x is the window's maximum: where it equals y, or is NaN, since y then is NaN
// too. Selects of numbers and not of truth values, which the compilers vectorise.
inline float take(float x, float y, float& left) {
  float taken = x == y ? left : 0.0F;
  taken = x != x ? left : taken;
  float rest = x == y ? 0.0F : left;
  rest = x != x ? 0.0F : rest;
  left = rest;
  return taken;
}

template <int block>
inline void backward_block(const float* dy, const float* top, const float* bottom, const float* y, float* dtop,
                           float* dbottom) {
#pragma omp simd
  for (int i = 0; i < block; ++i) {
    const float most = y[i];
    float left = dy[i];
    dtop[2 * i] = take(top[2 * i], most, left);
    dtop[2 * i + 1] = take(top[2 * i + 1], most, left);
    dbottom[2 * i] = take(bottom[2 * i], most, left);
    dbottom[2 * i + 1] = take(bottom[2 * i + 1], most, left);
  }
}

template <int block>
void forward_planes(const float* x, float* y, int64_t planes, int64_t height, int64_t width) {
  const int64_t rows = height / 2;
  const int64_t columns = width / 2;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t p = 0; p < rows; ++p) {
      const float* top = x + 2 * p * width;
      const float* bottom = top + width;
      int64_t q = 0;
      for (; q + block <= columns; q += block) forward_block<block>(top + 2 * q, bottom + 2 * q, y + q);
      if (q < columns) {
        q = columns - block;
        forward_block<block>(top + 2 * q, bottom + 2 * q, y + q);
      }
      y += columns;
    }
    x += height * width;
  }
}

template <int block>
void backward_planes(const float* dy, const float* x, const float* y, float* dx, int64_t planes, int64_t height,
                     int64_t width) {
  const int64_t rows = height / 2;
  const int64_t columns = width / 2;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t p = 0; p < rows; ++p) {
      const float* top = x + 2 * p * width;
      const float* bottom = top + width;
      float* dtop = dx + 2 * p * width;
      float* dbottom = dtop + width;
      int64_t q = 0;
      for (; q < columns; q += block) {
        if (q + block > columns) q = columns - block;
        backward_block<block>(dy + q, top + 2 * q, bottom + 2 * q, y + q, dtop + 2 * q, dbottom + 2 * q);
      }
      if (width % 2 != 0) dtop[width - 1] = dbottom[width - 1] = 0.0F;
      dy += columns;
      y += columns;
    }
    if (height % 2 != 0) {
      float* last = dx + (height - 1) * width;
      for (int64_t i = 0; i < width; ++i) last[i] = 0.0F;
    }
    x += height * width;
    dx += height * width;
  }
}

void forward(const float* x, float* y, int64_t planes, int64_t height, int64_t width) {
  if (width >= 32) {
    forward_planes<16>(x, y, planes, height, width);
  } else if (width >= 16) {
    forward_planes<8>(x, y, planes, height, width);
  } else if (width >= 8) {
    forward_planes<4>(x, y, planes, height, width);
  } else {
    forward_planes<1>(x, y, planes, height, width);
  }
}

void backward(const float* dy, const float* x, const float* y, float* dx, int64_t planes, int64_t height,
              int64_t width) {
  if (width >= 32) {
    backward_planes<16>(dy, x, y, dx, planes, height, width);
  } else if (width >= 16) {
    backward_planes<8>(dy, x, y, dx, planes, height, width);
  } else if (width >= 8) {
    backward_planes<4>(dy, x, y, dx, planes, height, width);
  } else {
    backward_planes<1>(dy, x, y, dx, planes, height, width);
  }
}

}  // namespace

namespace GPUNN_ISA {

// Calls body(first channel, load, store) for vectors of channels: load(p) reads a vector's channels, store(p, v) writes
// them.
template <class Body>
static GPUNN_ALWAYS_INLINE void each_vector(int64_t channels, const Body& body) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    body(
        c, [](const auto* p) { return load(p); }, [](auto* p, Vec v) { store(p, v); });
  }
  if (c == channels) return;
  const int n = static_cast<int>(channels - c);
  body(
      c, [n](const auto* p) { return load_first(p, n); }, [n](auto* p, Vec v) { store_first(p, v, n); });
}

static auto is_nan(Vec value) { return value != value; }  // NOLINT(misc-redundant-expression)

template <class T>
static void pixel_largest(const T* x, const PixelWindow& w, int64_t channels, T* y) {
  each_vector(channels, [&](int64_t c, auto load_at, auto store_at) {
    Vec best = load_at(x + c);
    for (int64_t i = 0; i < w.rows; ++i) {
      for (int64_t j = 0; j < w.columns; ++j) {
        const Vec value = load_at(x + c + i * w.row + j * w.pixel);
        best = ((value > best) | is_nan(value)) ? value : best;
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
        const Vec value = load_at(x + at);
        const auto here = (value == best) | is_nan(value);
        store_at(dx + at, load_at(dx + at) + (here ? left : zero()));
        left = here ? zero() : left;
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
    forward,
    backward,
    {pixel_largest<float>, pixel_to_largest<float>, pixel_average<float>, pixel_to_all<float>},
    {pixel_largest<BFloat16>, pixel_to_largest<BFloat16>, pixel_average<BFloat16>, pixel_to_all<BFloat16>},
    byte_largest};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
