// The points are 0, 1, -1, 1/2, -2 and infinity along each axis: their rounding errors are a third of those of the
// usual 0, 1, -1, 2, -2 and infinity (Barabasz et al., 2020).
#include "simd/images/winograd.hpp"

#include "simd/lanes/vec.hpp"

namespace gpunn::cpu::GPUNN_ISA {

constexpr int kPoints = 6;  // along an axis

// B^T of six inputs.
static GPUNN_ALWAYS_INLINE void input_points(const Vec (&d)[6], Vec (&v)[6]) {
  const Vec odd = d[3] - d[1];
  const Vec even = d[4] - d[2];
  v[0] = broadcast(1.5F) * odd + (broadcast(-2.0F) * d[2] + (d[0] + d[4]));
  v[1] = broadcast(2.5F) * d[3] + (broadcast(0.5F) * d[2] + (d[4] - d[1]));
  v[2] = broadcast(-2.5F) * d[2] + (broadcast(0.5F) * d[3] + (d[4] + d[1]));
  v[3] = broadcast(2.0F) * odd + even;
  v[4] = broadcast(-0.5F) * odd + even;
  v[5] = broadcast(1.5F) * even + (broadcast(-2.0F) * d[3] + (d[1] + d[5]));
}

// G of three or four taps.
template <int taps>
static GPUNN_ALWAYS_INLINE void tap_points(const Vec (&g)[taps], Vec (&u)[6]) {
  const Vec even = g[0] + g[2];
  Vec odd = g[1];
  Vec half = broadcast(0.25F) * g[2] + (broadcast(0.5F) * g[1] + g[0]);
  Vec two = broadcast(4.0F) * g[2] + (broadcast(-2.0F) * g[1] + g[0]);
  if constexpr (taps == 4) {
    odd += g[3];
    half += broadcast(0.125F) * g[3];
    two += broadcast(-8.0F) * g[3];
  }
  u[0] = g[0];
  u[1] = (even + odd) * broadcast(1.0F / 3);
  u[2] = (odd - even) * broadcast(1.0F / 3);
  u[3] = half * broadcast(-16.0F / 15);
  u[4] = two * broadcast(1.0F / 15);
  u[5] = g[taps - 1];
}

// A^T for three or four results.
template <int results>
static GPUNN_ALWAYS_INLINE void results_of(const Vec (&m)[6], Vec (&y)[results]) {
  const Vec sum = m[1] + m[2];
  const Vec difference = m[1] - m[2];
  y[0] = m[0] + sum + (m[3] + m[4]);
  y[1] = difference + (broadcast(-2.0F) * m[4] + broadcast(0.5F) * m[3]);
  y[2] = sum + (broadcast(4.0F) * m[4] + broadcast(0.25F) * m[3]);
  if constexpr (results == 4) y[3] = difference + (broadcast(-8.0F) * m[4] + broadcast(0.125F) * m[3]);
  y[results - 1] += m[5];
}

template <bool whole>
static GPUNN_ALWAYS_INLINE Vec load_lanes_of(const float* p, int n) {
  if constexpr (whole) {
    return load(p);
  } else {
    return load_first(p, n);
  }
}

template <bool whole>
static GPUNN_ALWAYS_INLINE void store_lanes_of(float* p, Vec v, int n) {
  if constexpr (whole) {
    store(p, v);
  } else {
    store_first(p, v, n);
  }
}

static GPUNN_ALWAYS_INLINE bool covers(const WinogradTile& t, int size) {
  return t.row_begin <= 0 && t.column_begin <= 0 && t.row_end >= size && t.column_end >= size;
}

static GPUNN_ALWAYS_INLINE void points_from(const Vec (&d)[6], Vec (&v)[6]) { input_points(d, v); }
static GPUNN_ALWAYS_INLINE void points_from(const Vec (&d)[4], Vec (&v)[6]) { tap_points<4>(d, v); }

// The 36 points of size x size pixels, of n channels.
template <int size, bool inside, bool whole>
static GPUNN_ALWAYS_INLINE void pixel_points(const float* x, const WinogradTile& t, int n, float* v, int64_t v_point) {
  Vec half[kPoints][size];
#pragma GCC unroll 6
  for (int j = 0; j < size; ++j) {
    Vec column[size];
    const bool in_columns = inside || (j >= t.column_begin && j < t.column_end);
#pragma GCC unroll 6
    for (int i = 0; i < size; ++i) {
      const bool in_image = inside || (in_columns && i >= t.row_begin && i < t.row_end);
      column[i] = in_image ? load_lanes_of<whole>(x + i * t.row + j * t.column, n) : zero();
    }
    Vec points[kPoints];
    points_from(column, points);
#pragma GCC unroll 6
    for (int i = 0; i < kPoints; ++i) half[i][j] = points[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < kPoints; ++i) {
    Vec points[kPoints];
    points_from(half[i], points);
#pragma GCC unroll 6
    for (int j = 0; j < kPoints; ++j) store_lanes_of<whole>(v + (i * kPoints + j) * v_point, points[j], n);
  }
}

template <int size>
static void transform_pixels(const float* x, const WinogradTile& t, int64_t channels, float* v, int64_t v_point) {
  const bool inside = covers(t, size);
  int64_t c = 0;
  if (inside) {
    for (; c + kLanes <= channels; c += kLanes) pixel_points<size, true, true>(x + c, t, kLanes, v + c, v_point);
  } else {
    for (; c + kLanes <= channels; c += kLanes) pixel_points<size, false, true>(x + c, t, kLanes, v + c, v_point);
  }
  if (c < channels) pixel_points<size, false, false>(x + c, t, static_cast<int>(channels - c), v + c, v_point);
}

template <int results>
static GPUNN_ALWAYS_INLINE void back(const Vec (&m)[kPoints][kPoints], Vec (&y)[results][results]) {
  Vec half[results][kPoints];
#pragma GCC unroll 6
  for (int j = 0; j < kPoints; ++j) {
    Vec column[kPoints];
    Vec made[results];
#pragma GCC unroll 6
    for (int i = 0; i < kPoints; ++i) column[i] = m[i][j];
    results_of<results>(column, made);
#pragma GCC unroll 6
    for (int i = 0; i < results; ++i) half[i][j] = made[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < results; ++i) results_of<results>(half[i], y[i]);
}

template <bool whole>
static GPUNN_ALWAYS_INLINE void load_points(const float* m, int64_t m_point, int n, Vec (&points)[kPoints][kPoints]) {
#pragma GCC unroll 6
  for (int i = 0; i < kPoints; ++i) {
#pragma GCC unroll 6
    for (int j = 0; j < kPoints; ++j) points[i][j] = load_lanes_of<whole>(m + (i * kPoints + j) * m_point, n);
  }
}

template <bool whole>
static GPUNN_ALWAYS_INLINE void output_pixels(const float* m, int64_t m_point, int n, const float* bias, bool add,
                                              bool relu, float* y, const WinogradTile& t) {
  Vec points[kPoints][kPoints];
  Vec pixels[4][4];
  load_points<whole>(m, m_point, n, points);
  back<4>(points, pixels);
  const Vec bias_vec = bias == nullptr ? zero() : load_lanes_of<whole>(bias, n);
  const bool inside = covers(t, 4);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      if (!inside && (i >= t.row_end || j >= t.column_end)) continue;
      float* const to = y + i * t.row + j * t.column;
      Vec value = pixels[i][j] + bias_vec;
      if (add) value += load_lanes_of<whole>(to, n);
      if (relu) value = max_or_nan(value, zero());
      store_lanes_of<whole>(to, value, n);
    }
  }
}

static void transform_output(const float* m, int64_t m_point, int64_t channels, const float* bias, bool add, bool relu,
                             float* y, const WinogradTile& t) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    output_pixels<true>(m + c, m_point, kLanes, bias == nullptr ? nullptr : bias + c, add, relu, y + c, t);
  }
  if (c < channels) {
    output_pixels<false>(m + c, m_point, static_cast<int>(channels - c), bias == nullptr ? nullptr : bias + c, add,
                         relu, y + c, t);
  }
}

template <bool whole>
static GPUNN_ALWAYS_INLINE void filter_points(const float* w, int64_t w_tap, int n, float* u, int64_t u_point) {
  Vec half[kPoints][3];
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j) {
    Vec column[3];
    Vec points[kPoints];
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) column[i] = load_lanes_of<whole>(w + (i * 3 + j) * w_tap, n);
    tap_points<3>(column, points);
#pragma GCC unroll 6
    for (int i = 0; i < kPoints; ++i) half[i][j] = points[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < kPoints; ++i) {
    Vec points[kPoints];
    tap_points<3>(half[i], points);
#pragma GCC unroll 6
    for (int j = 0; j < kPoints; ++j) store_lanes_of<whole>(u + (i * kPoints + j) * u_point, points[j], n);
  }
}

static void transform_filter(const float* w, int64_t w_tap, int64_t n, float* u, int64_t u_point) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) filter_points<true>(w + i, w_tap, kLanes, u + i, u_point);
  if (i < n) filter_points<false>(w + i, w_tap, static_cast<int>(n - i), u + i, u_point);
}

template <bool whole>
static GPUNN_ALWAYS_INLINE void filter_of_points(const float* m, int64_t m_point, int n, float* dw, int64_t dw_tap) {
  Vec points[kPoints][kPoints];
  Vec taps[3][3];
  load_points<whole>(m, m_point, n, points);
  back<3>(points, taps);
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) store_lanes_of<whole>(dw + (i * 3 + j) * dw_tap, taps[i][j], n);
  }
}

static void transform_weight_gradient(const float* m, int64_t m_point, int64_t n, float* dw, int64_t dw_tap) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) filter_of_points<true>(m + i, m_point, kLanes, dw + i, dw_tap);
  if (i < n) filter_of_points<false>(m + i, m_point, static_cast<int>(n - i), dw + i, dw_tap);
}

constinit const WinogradKernels winograd_kernels{transform_pixels<6>, transform_pixels<4>, transform_output,
                                                 transform_filter, transform_weight_gradient};

}  // namespace gpunn::cpu::GPUNN_ISA
