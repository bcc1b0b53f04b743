#include "simd/depthwise.hpp"

#include "simd/vec.hpp"

namespace gpunn::cpu::GPUNN_ISA {

struct WholeVector {
  template <class T>
  Vec get(const T* p) const {
    return load(p);
  }
  template <class T>
  void put(T* p, Vec v) const {
    store(p, v);
  }
};

struct FirstLanes {
  int n;
  template <class T>
  Vec get(const T* p) const {
    return load_first(p, n);
  }
  template <class T>
  void put(T* p, Vec v) const {
    store_first(p, v, n);
  }
};

template <class T, class Lanes>
static GPUNN_ALWAYS_INLINE void put_target(Lanes lanes, Vec sum, const float* bias, bool relu, T* y) {
  if (bias != nullptr) sum += lanes.get(bias);
  lanes.put(y, relu ? max_or_nan(sum, zero()) : sum);
}

// `outputs` neighbouring targets, which share the sources that they both see: stride in taps, 0 where it is no
// multiple.
template <int taps, int stride, int outputs, class T, class Lanes>
static GPUNN_ALWAYS_INLINE void targets_of(const DepthwiseRun<T>& run, Lanes lanes, int64_t c, int64_t first,
                                           const float* bias, bool relu, T* y, int64_t y_target) {
  Vec sum[outputs];
#pragma GCC unroll 8
  for (int j = 0; j < outputs; ++j) sum[j] = zero();
  for (int r = 0; r < run.rows; ++r) {
    const T* x = run.x[r] + first * run.x_target + c;
    const float* w = run.w[r] + c;
    Vec filter[taps];
#pragma GCC unroll 8
    for (int t = 0; t < taps; ++t) filter[t] = lanes.get(w + t * run.w_tap);
#pragma GCC unroll 32
    for (int at = 0; at < (outputs - 1) * stride + taps; ++at) {
      const Vec source = lanes.get(x + at * run.x_tap);
#pragma GCC unroll 8
      for (int j = 0; j < outputs; ++j) {
        const int t = at - j * stride;
        if (t >= 0 && t < taps) sum[j] += filter[t] * source;
      }
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < outputs; ++j) put_target(lanes, sum[j], bias, relu, y + (first + j) * y_target + c);
}

template <int taps, int stride, class T, class Lanes>
static GPUNN_ALWAYS_INLINE void shared_row(const DepthwiseRun<T>& run, Lanes lanes, int64_t c, const float* bias,
                                           bool relu, T* y, int64_t y_target) {
  int64_t j = 0;
  for (; j + 8 <= run.targets; j += 8) targets_of<taps, stride, 8>(run, lanes, c, j, bias, relu, y, y_target);
  for (; j + 2 <= run.targets; j += 2) targets_of<taps, stride, 2>(run, lanes, c, j, bias, relu, y, y_target);
  for (; j < run.targets; ++j) targets_of<taps, stride, 1>(run, lanes, c, j, bias, relu, y, y_target);
}

template <class T, class Lanes>
static GPUNN_ALWAYS_INLINE void any_row(const DepthwiseRun<T>& run, Lanes lanes, int64_t c, const float* bias,
                                        bool relu, T* y, int64_t y_target) {
  for (int64_t j = 0; j < run.targets; ++j) {
    Vec sum = zero();
    for (int r = 0; r < run.rows; ++r) {
      const T* x = run.x[r] + j * run.x_target + c;
      const float* w = run.w[r] + c;
      for (int t = 0; t < run.taps; ++t) sum += lanes.get(w + t * run.w_tap) * lanes.get(x + t * run.x_tap);
    }
    put_target(lanes, sum, bias, relu, y + j * y_target + c);
  }
}

template <int stride, class T, class Lanes>
static GPUNN_ALWAYS_INLINE void row_of(const DepthwiseRun<T>& run, Lanes lanes, int64_t c, const float* bias, bool relu,
                                       T* y, int64_t y_target) {
  switch (run.taps) {
    case 1:
      return shared_row<1, stride>(run, lanes, c, bias, relu, y, y_target);
    case 2:
      return shared_row<2, stride>(run, lanes, c, bias, relu, y, y_target);
    case 3:
      return shared_row<3, stride>(run, lanes, c, bias, relu, y, y_target);
    case 5:
      return shared_row<5, stride>(run, lanes, c, bias, relu, y, y_target);
    default:
      return any_row(run, lanes, c, bias, relu, y, y_target);
  }
}

template <class T, class Lanes>
static GPUNN_ALWAYS_INLINE void row_lanes(const DepthwiseRun<T>& run, Lanes lanes, int64_t c, const float* bias,
                                          bool relu, T* y, int64_t y_target) {
  const float* own_bias = bias == nullptr ? nullptr : bias + c;
  if (run.x_target == run.x_tap) {
    row_of<1>(run, lanes, c, own_bias, relu, y, y_target);
  } else if (run.x_target == 2 * run.x_tap) {
    row_of<2>(run, lanes, c, own_bias, relu, y, y_target);
  } else {
    any_row(run, lanes, c, own_bias, relu, y, y_target);
  }
}

template <class T>
static void depthwise_row(const DepthwiseRun<T>& run, const float* bias, bool relu, T* y, int64_t y_target) {
  int64_t c = 0;
  for (; c + kLanes <= run.channels; c += kLanes) row_lanes(run, WholeVector{}, c, bias, relu, y, y_target);
  if (c < run.channels) {
    row_lanes(run, FirstLanes{static_cast<int>(run.channels - c)}, c, bias, relu, y, y_target);
  }
}

template <int rows, int taps, class T, class Lanes>
static GPUNN_ALWAYS_INLINE void filter_rows(const DepthwiseRun<T>& run, Lanes lanes, int first_row, int first_tap,
                                            int64_t c, const T* dy, int64_t dy_target, float* sums, int64_t sums_row,
                                            int64_t sums_tap) {
  Vec sum[rows][taps];
  const T* x[rows];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
    x[r] = run.x[first_row + r] + first_tap * run.x_tap + c;
#pragma GCC unroll 4
    for (int t = 0; t < taps; ++t) sum[r][t] = zero();
  }
  const T* d = dy + c;
  for (int64_t j = 0; j < run.targets; ++j) {
    const Vec gradient = lanes.get(d);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int t = 0; t < taps; ++t) sum[r][t] += gradient * lanes.get(x[r] + t * run.x_tap);
      x[r] += run.x_target;
    }
    d += dy_target;
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int t = 0; t < taps; ++t) {
      float* to = sums + (first_row + r) * sums_row + (first_tap + t) * sums_tap + c;
      lanes.put(to, lanes.get(to) + sum[r][t]);
    }
  }
}

template <int rows, class T, class Lanes>
static GPUNN_ALWAYS_INLINE void filter_taps(const DepthwiseRun<T>& run, Lanes lanes, int row, int64_t c, const T* dy,
                                            int64_t dy_target, float* sums, int64_t sums_row, int64_t sums_tap) {
  int t = 0;
  for (; t + 3 <= run.taps; t += 3) {
    filter_rows<rows, 3>(run, lanes, row, t, c, dy, dy_target, sums, sums_row, sums_tap);
  }
  for (; t < run.taps; ++t) {
    filter_rows<rows, 1>(run, lanes, row, t, c, dy, dy_target, sums, sums_row, sums_tap);
  }
}

template <class T, class Lanes>
static GPUNN_ALWAYS_INLINE void filter_lanes(const DepthwiseRun<T>& run, Lanes lanes, int64_t c, const T* dy,
                                             int64_t dy_target, float* sums, int64_t sums_row, int64_t sums_tap) {
  int r = 0;
  for (; r + 3 <= run.rows; r += 3) filter_taps<3>(run, lanes, r, c, dy, dy_target, sums, sums_row, sums_tap);
  for (; r < run.rows; ++r) filter_taps<1>(run, lanes, r, c, dy, dy_target, sums, sums_row, sums_tap);
}

template <class T>
static void depthwise_filter(const DepthwiseRun<T>& run, const T* dy, int64_t dy_target, float* sums, int64_t sums_row,
                             int64_t sums_tap) {
  int64_t c = 0;
  for (; c + kLanes <= run.channels; c += kLanes) {
    filter_lanes(run, WholeVector{}, c, dy, dy_target, sums, sums_row, sums_tap);
  }
  if (c < run.channels) {
    filter_lanes(run, FirstLanes{static_cast<int>(run.channels - c)}, c, dy, dy_target, sums, sums_row, sums_tap);
  }
}

constinit const DepthwiseKernels depthwise_kernels{{depthwise_row<float>, depthwise_filter<float>},
                                                   {depthwise_row<BFloat16>, depthwise_filter<BFloat16>}};

}  // namespace gpunn::cpu::GPUNN_ISA
