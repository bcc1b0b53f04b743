#include "simd/images/depthwise.hpp"

#include <type_traits>

#include "simd/lanes/vec.hpp"

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

// Calls body(lanes, c) for the vectors of the channels. Everything here has that loop inside the one over the targets:
// memory is read and written in its order.
template <class Body>
static GPUNN_ALWAYS_INLINE void each_vector_of(int64_t channels, const Body& body) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) body(WholeVector{}, c);
  if (c < channels) body(FirstLanes{static_cast<int>(channels - c)}, c);
}

template <int taps, int stride, int outputs, class T>
static inline void targets_at(const DepthwiseRun<T>& run, int64_t first, const float* bias, bool relu, T* y,
                              int64_t y_target) {
  each_vector_of(
      run.channels, [&](auto lanes, int64_t c) __attribute__((always_inline)) {
        targets_of<taps, stride, outputs>(run, lanes, c, first, bias == nullptr ? nullptr : bias + c, relu, y,
                                          y_target);
      });
}

template <int taps, int stride, class T>
static inline void shared_row(const DepthwiseRun<T>& run, const float* bias, bool relu, T* y, int64_t y_target) {
  int64_t j = 0;
  for (; j + 8 <= run.targets; j += 8) targets_at<taps, stride, 8>(run, j, bias, relu, y, y_target);
  for (; j + 6 <= run.targets; j += 6) targets_at<taps, stride, 6>(run, j, bias, relu, y, y_target);
  for (; j + 2 <= run.targets; j += 2) targets_at<taps, stride, 2>(run, j, bias, relu, y, y_target);
  for (; j < run.targets; ++j) targets_at<taps, stride, 1>(run, j, bias, relu, y, y_target);
}

template <class T>
static inline void any_row(const DepthwiseRun<T>& run, const float* bias, bool relu, T* y, int64_t y_target) {
  for (int64_t j = 0; j < run.targets; ++j) {
    each_vector_of(
        run.channels, [&](auto lanes, int64_t c) __attribute__((always_inline)) {
          Vec sum = zero();
          for (int r = 0; r < run.rows; ++r) {
            const T* x = run.x[r] + j * run.x_target + c;
            const float* w = run.w[r] + c;
            for (int t = 0; t < run.taps; ++t) sum += lanes.get(w + t * run.w_tap) * lanes.get(x + t * run.x_tap);
          }
          put_target(lanes, sum, bias == nullptr ? nullptr : bias + c, relu, y + j * y_target + c);
        });
  }
}

template <int stride, class T>
static inline void row_of(const DepthwiseRun<T>& run, const float* bias, bool relu, T* y, int64_t y_target) {
  switch (run.taps) {
    case 1:
      return shared_row<1, stride>(run, bias, relu, y, y_target);
    case 2:
      return shared_row<2, stride>(run, bias, relu, y, y_target);
    case 3:
      return shared_row<3, stride>(run, bias, relu, y, y_target);
    case 5:
      return shared_row<5, stride>(run, bias, relu, y, y_target);
    default:
      return any_row(run, bias, relu, y, y_target);
  }
}

template <class T>
static void depthwise_row(const DepthwiseRun<T>& run, const float* bias, bool relu, T* y, int64_t y_target) {
  if (run.x_target == run.x_tap) {
    row_of<1>(run, bias, relu, y, y_target);
  } else if (run.x_target == 2 * run.x_tap) {
    row_of<2>(run, bias, relu, y, y_target);
  } else {
    any_row(run, bias, relu, y, y_target);
  }
}

// Where the filter's sums go, and what they are of.
template <class T>
struct FilterRun {
  const DepthwiseRun<T>& run;
  const T* dy;
  int64_t dy_target;
  float* sums;
  int64_t sums_row;
  int64_t sums_tap;
};

// Of `targets` neighbouring targets: their gradients, and what of x several taps see, are loaded once and stay in
// registers beside the sums. A single tap may have any stride.
template <int rows, int taps, int stride, int targets, class T, class Lanes>
static GPUNN_ALWAYS_INLINE void filter_tile(const FilterRun<T>& f, Lanes lanes, int64_t c, int64_t first, int row,
                                            int tap) {
  const DepthwiseRun<T>& run = f.run;
  const int64_t step = taps == 1 ? run.x_target : run.x_tap;
  constexpr int kStride = taps == 1 ? 1 : stride;  // NOLINT(bugprone-branch-clone): alike at stride 1 alone
  Vec gradient[targets];
  Vec sum[rows][taps];
#pragma GCC unroll 8
  for (int j = 0; j < targets; ++j) gradient[j] = lanes.get(f.dy + (first + j) * f.dy_target + c);
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
    const T* x = run.x[row + r] + tap * run.x_tap + first * run.x_target + c;
#pragma GCC unroll 8
    for (int t = 0; t < taps; ++t) sum[r][t] = zero();
#pragma GCC unroll 32
    for (int at = 0; at < (targets - 1) * kStride + taps; ++at) {
      const Vec source = lanes.get(x + at * step);
#pragma GCC unroll 8
      for (int t = 0; t < taps; ++t) {
        const int j = at - t;
        if (j >= 0 && j % kStride == 0 && j / kStride < targets) sum[r][t] += gradient[j / kStride] * source;
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < taps; ++t) {
      float* to = f.sums + (row + r) * f.sums_row + (tap + t) * f.sums_tap + c;
      lanes.put(to, lanes.get(to) + sum[r][t]);
    }
  }
}

template <int rows, int taps, int stride, class T>
static inline void filter_row(const FilterRun<T>& f, int row, int tap) {
  int64_t j = 0;
  const auto tile = [&](auto targets) __attribute__((always_inline)) {
    constexpr int kTargets = decltype(targets)::value;
    for (; j + kTargets <= f.run.targets; j += kTargets) {
      each_vector_of(
          f.run.channels, [&](auto lanes, int64_t c) __attribute__((always_inline)) {
            filter_tile<rows, taps, stride, kTargets>(f, lanes, c, j, row, tap);
          });
    }
  };
  tile(std::integral_constant < int, kLanes == 16 ? 8 : 4 > ());
  if constexpr (kLanes == 16) tile(std::integral_constant<int, 6>());
  tile(std::integral_constant<int, 2>());
  tile(std::integral_constant<int, 1>());
}

template <int rows, int stride, class T>
static inline void filter_taps(const FilterRun<T>& f, int row) {
  switch (f.run.taps) {
    case 2:
      return filter_row<rows, 2, stride>(f, row, 0);
    case 3:
      return filter_row<rows, 3, stride>(f, row, 0);
    default:
      for (int t = 0; t < f.run.taps; ++t) filter_row<rows, 1, 1>(f, row, t);
  }
}

template <int rows, class T>
static inline void filter_rows(const FilterRun<T>& f, int row) {
  if (f.run.x_target == f.run.x_tap) {
    filter_taps<rows, 1>(f, row);
  } else if (f.run.x_target == 2 * f.run.x_tap) {
    filter_taps<rows, 2>(f, row);
  } else {
    for (int t = 0; t < f.run.taps; ++t) filter_row<rows, 1, 1>(f, row, t);
  }
}

template <class T>
static void depthwise_filter(const DepthwiseRun<T>& run, const T* dy, int64_t dy_target, float* sums, int64_t sums_row,
                             int64_t sums_tap) {
  const FilterRun<T> f{run, dy, dy_target, sums, sums_row, sums_tap};
  int r = 0;
  for (; r + 3 <= run.rows; r += 3) filter_rows<3>(f, r);
  for (; r + 2 <= run.rows; r += 2) filter_rows<2>(f, r);
  for (; r < run.rows; ++r) filter_rows<1>(f, r);
}

constinit const DepthwiseKernels depthwise_kernels{{depthwise_row<float>, depthwise_filter<float>},
                                                   {depthwise_row<BFloat16>, depthwise_filter<BFloat16>}};

}  // namespace gpunn::cpu::GPUNN_ISA
