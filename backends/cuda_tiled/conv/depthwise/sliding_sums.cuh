// The sums of a depthwise convolution in registers, for the threads of every layout. A thread has `channels` channels
// of some columns and goes down the rows, so that it reads each input once, whatever number of taps it meets.
//
// Rows are counted in steps of the stride s. Step a has the rows s * a + b, b < s, of the padded side; tap s * t + b
// joins such a row with row a - t of the other side. So the same index t serves all three passes:
//
//   forward          y[a - t]      += w[s * t + b] * x[s * a + b - pad]
//   data gradient    dx[s * a + b - pad] += w[s * t + b] * dy[a - t]
//   weight gradient  dw[s * t + b] += dy[a - t] * x[s * a + b - pad]
#pragma once

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled::depthwise {

// The number of steps that a filter of `taps` taps reaches back.
__host__ __device__ constexpr int steps_of(int taps, int stride) { return (taps + stride - 1) / stride; }

// w[taps][taps][channels] as f32.
template <int taps, int channels>
struct Weights {
  float at[taps][taps][channels];
};

// `columns` columns of y. Row a - steps + 1 is complete after step a.
template <int taps, int stride, int columns, int channels>
class ForwardSums {
 public:
  static constexpr int kSteps = steps_of(taps, stride);
  static constexpr int kRead = (columns - 1) * stride + taps;  // columns of x

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int t = 0; t < kSteps; ++t) clear(t);
  }

  // Adds the products of row `b` of a step.
  template <int b>
  __device__ __forceinline__ void add(const float (&x)[kRead][channels], const Weights<taps, channels>& w) {
#pragma unroll
    for (int t = 0; stride * t + b < taps; ++t) {
#pragma unroll
      for (int s = 0; s < taps; ++s) {
#pragma unroll
        for (int j = 0; j < columns; ++j) {
#pragma unroll
          for (int c = 0; c < channels; ++c) sum_[t][j][c] += x[j * stride + s][c] * w.at[stride * t + b][s][c];
        }
      }
    }
  }

  __device__ __forceinline__ const float (&complete() const)[columns][channels] { return sum_[kSteps - 1]; }

  __device__ __forceinline__ void next() {
#pragma unroll
    for (int t = kSteps - 1; t > 0; --t) {
#pragma unroll
      for (int j = 0; j < columns; ++j) {
#pragma unroll
        for (int c = 0; c < channels; ++c) sum_[t][j][c] = sum_[t - 1][j][c];
      }
    }
    clear(0);
  }

 private:
  __device__ __forceinline__ void clear(int t) {
#pragma unroll
    for (int j = 0; j < columns; ++j) {
#pragma unroll
      for (int c = 0; c < channels; ++c) sum_[t][j][c] = 0.0F;
    }
  }

  float sum_[kSteps][columns][channels];
};

// `groups` groups of stride x stride pixels of dx, complete for step a after row a of dy. Groups begin at multiples of
// the stride in dx if the padding is one; `shift`, 0 or 1, is what it lacks of that at stride 2: the filter then counts
// as having a tap of zero in front.
template <int taps, int stride, int shift, int groups, int channels>
class DataSums {
 public:
  static constexpr int kSteps = steps_of(taps + shift, stride);
  static constexpr int kRead = groups + kSteps - 1;  // columns of dy, from kSteps - 1 before the first group's on
  using Group = float[stride][stride][channels];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int t = 0; t < kSteps; ++t) clear(t);
  }

  __device__ __forceinline__ void add(const float (&dy)[kRead][channels], const Weights<taps, channels>& w) {
#pragma unroll
    for (int r = 0; r < taps; ++r) {
      const int t = (r + shift) / stride, b = (r + shift) % stride;
#pragma unroll
      for (int s = 0; s < taps; ++s) {
        const int u = (s + shift) / stride, d = (s + shift) % stride;
#pragma unroll
        for (int j = 0; j < groups; ++j) {
#pragma unroll
          for (int c = 0; c < channels; ++c) sum_[t][j][b][d][c] += dy[j - u + kSteps - 1][c] * w.at[r][s][c];
        }
      }
    }
  }

  __device__ __forceinline__ const Group& complete(int group) const { return sum_[0][group]; }

  __device__ __forceinline__ void next() {
#pragma unroll
    for (int t = 0; t + 1 < kSteps; ++t) {
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const int j = i / (stride * stride * channels), b = i / (stride * channels) % stride, d = i / channels % stride;
        sum_[t][j][b][d][i % channels] = sum_[t + 1][j][b][d][i % channels];
      }
    }
    clear(kSteps - 1);
  }

 private:
  static constexpr int kGroup = groups * stride * stride * channels;

  __device__ __forceinline__ void clear(int t) {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const int j = i / (stride * stride * channels), b = i / (stride * channels) % stride, d = i / channels % stride;
      sum_[t][j][b][d][i % channels] = 0.0F;
    }
  }

  float sum_[kSteps][groups][stride][stride][channels];
};

// The gradient of all taps, and the rows of dy that they may still meet.
template <int taps, int stride, int columns, int channels>
class FilterSums {
 public:
  static constexpr int kSteps = steps_of(taps, stride);
  static constexpr int kRead = (columns - 1) * stride + taps;  // columns of x

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int r = 0; r < taps; ++r) {
#pragma unroll
      for (int s = 0; s < taps; ++s) {
#pragma unroll
        for (int c = 0; c < channels; ++c) sum[r][s][c] = 0.0F;
      }
    }
  }

  // Before the first row of dy of a column.
  __device__ __forceinline__ void forget() {
#pragma unroll
    for (int t = 0; t < kSteps; ++t) {
#pragma unroll
      for (int j = 0; j < columns; ++j) {
#pragma unroll
        for (int c = 0; c < channels; ++c) dy_[t][j][c] = 0.0F;
      }
    }
  }

  // Begins step a with row a of dy.
  __device__ __forceinline__ void step(const float (&dy)[columns][channels]) {
#pragma unroll
    for (int t = kSteps - 1; t > 0; --t) {
#pragma unroll
      for (int j = 0; j < columns; ++j) {
#pragma unroll
        for (int c = 0; c < channels; ++c) dy_[t][j][c] = dy_[t - 1][j][c];
      }
    }
#pragma unroll
    for (int j = 0; j < columns; ++j) {
#pragma unroll
      for (int c = 0; c < channels; ++c) dy_[0][j][c] = dy[j][c];
    }
  }

  template <int b>
  __device__ __forceinline__ void add(const float (&x)[kRead][channels]) {
#pragma unroll
    for (int t = 0; stride * t + b < taps; ++t) {
#pragma unroll
      for (int s = 0; s < taps; ++s) {
#pragma unroll
        for (int j = 0; j < columns; ++j) {
#pragma unroll
          for (int c = 0; c < channels; ++c) sum[stride * t + b][s][c] += dy_[t][j][c] * x[j * stride + s][c];
        }
      }
    }
  }

  float sum[taps][taps][channels];

 private:
  float dy_[kSteps][columns][channels];
};

}  // namespace gpunn::cuda_tiled::depthwise
