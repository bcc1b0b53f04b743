// The work between two convolutions of one image in a fused training step, and its gradient: adds the splits, then max
// pooling, bias and ReLU.
#pragma once

#include "subgraphs/step/shared.cuh"

namespace gpunn::cuda_tiled {

// Calls visit(filter, place, row, column) for all filters and places of a pooled plane.
template <class B, class Visit>
__device__ __forceinline__ void each_pooled(const ConvPlan& conv, Visit visit) {
  const int size = conv.pooled_height * conv.pooled_width;
  const int groups = conv.pool_groups;
  const int group = groups > 1 ? divide(static_cast<int>(threadIdx.x), conv.by_plane) : 0;
  if (group >= groups) return;
#pragma unroll 1
  for (int place = static_cast<int>(threadIdx.x) - group * size; place < size; place += B::kThreads) {
    const int row = divide(place, conv.by_row);
    const int column = place - row * conv.pooled_width;
#pragma unroll 1
    for (int filter = group; filter < conv.filters; filter += groups) visit(filter, place, row, column);
  }
}

// Calls look(at, value) for the values of a window, row by row. `two_by_two`: it has four, and its rows begin at
// multiples of 8 bytes.
template <class Look>
__device__ __forceinline__ void each_of_window(const ConvPlan& conv, bool two_by_two, const float* window, int pitch,
                                               Look& look) {
  if (two_by_two) {
    const float2 upper = *reinterpret_cast<const float2*>(window);
    const float2 lower = *reinterpret_cast<const float2*>(window + pitch);
    look(0, upper.x);
    look(1, upper.y);
    look(2, lower.x);
    look(3, lower.y);
  } else {
    int at = 0;
    for (int y = 0; y < conv.window_rows; ++y) {
      for (int x = 0; x < conv.window_columns; ++x) look(at++, window[y * pitch + x]);
    }
  }
}

// The sums of row_pass(), the largest of each window, bias and ReLU, to put(filter, row, column, i, value); notes which
// was the largest.
template <class B, class Put>
__device__ __forceinline__ void finish_conv(const ConvPlan& conv, Put put) {
  const float* shared = shared_floats();
  const int size = conv.pooled_height * conv.pooled_width;
  const int pitch = conv.forward.pitch;
  const int splits = conv.forward.splits;
  const int a_filter = conv.forward.out_rows * pitch;
  const int a_split = conv.filters * a_filter;
  const int window_rows = conv.window_rows;
  const int window_columns = conv.window_columns;
  const int stride_rows = conv.stride_rows;
  const int stride_columns = conv.stride_columns;
  const bool relu = conv.relu != 0;
  const float* sums = shared + conv.forward.sums;
  const float* bias = shared + conv.bias;
  uint8_t* chosen = shared_bytes() + conv.chosen;
  // Pairs lie at multiples of 8 bytes.
  const bool two_by_two = window_rows == 2 && window_columns == 2 && stride_columns % 2 == 0;
  each_pooled<B>(conv, [&](int filter, int place, int row, int column) {
    const float* window = sums + filter * a_filter + row * stride_rows * pitch + column * stride_columns;
    float most = 0.0F;
    int which = 0;
    // NaN is the largest, the first one of several.
    const auto look = [&](int at, float value) {
      if (at == 0 || (!(value <= most) && !isnan(most))) {
        most = value;
        which = at;
      }
    };
    if (two_by_two) {
      float value[4] = {};
#pragma unroll 2
      for (int split = 0; split < splits; ++split) {
        const float2 upper = *reinterpret_cast<const float2*>(window);
        const float2 lower = *reinterpret_cast<const float2*>(window + pitch);
        value[0] += upper.x;
        value[1] += upper.y;
        value[2] += lower.x;
        value[3] += lower.y;
        window += a_split;
      }
#pragma unroll
      for (int at = 0; at < 4; ++at) look(at, value[at]);
    } else {
      int at = 0;
      for (int r = 0; r < window_rows; ++r) {
        for (int c = 0; c < window_columns; ++c) {
          float value = 0.0F;
          for (int split = 0; split < splits; ++split) value += window[split * a_split + r * pitch + c];
          look(at++, value);
        }
      }
    }
    most += bias[filter];
    if (relu && most < 0.0F) most = 0.0F;
    const int i = filter * size + place;
    chosen[i] = static_cast<uint8_t>(relu && !(most > 0.0F) ? 255 : which);
    put(filter, row, column, i, most);
  });
}

// Puts the gradient of each window where its largest element was, and notes where in x that is: the sum of `terms`
// numbers that lie `apart`, the first at get(filter, row, column, i).
template <class B, class Get>
__device__ __forceinline__ void unpool(const ConvPlan& conv, int terms, int apart, Get get) {
  float* shared = shared_floats();
  const int size = conv.pooled_height * conv.pooled_width;
  const int stride_rows = conv.stride_rows;
  const int stride_columns = conv.stride_columns;
  const int window_columns = conv.window_columns;
  const Divisor by_window = conv.by_window;
  const int pitch = conv.dy_pitch;
  const int plane = conv.dy_plane;
  float* dy = shared + conv.dy + conv.dy_left;
  const uint8_t* chosen = shared_bytes() + conv.chosen;
  const bool sparse = conv.sparse != 0;
  float2* windows = reinterpret_cast<float2*>(shared + conv.windows);
  const int x_pitch = conv.x_pitch;
  each_pooled<B>(conv, [&](int filter, int place, int row, int column) {
    const int i = filter * size + place;
    const int which = chosen[i];
    const float* from = shared + get(filter, row, column, i);
    float sum = 0.0F;
#pragma unroll 8
    for (int term = 0; term < terms; ++term) sum += from[term * apart];
    if (which == 255) {
      if (sparse) windows[i] = make_float2(0.0F, 0.0F);
      return;
    }
    const int r = divide(which, by_window);
    const int c = which - r * window_columns;
    const int y = row * stride_rows + r;
    const int x = column * stride_columns + c;
    dy[filter * plane + y * pitch + x] = sum;
    if (sparse) windows[i] = make_float2(__int_as_float(y * x_pitch + x), sum);
  });
}

}  // namespace gpunn::cuda_tiled
