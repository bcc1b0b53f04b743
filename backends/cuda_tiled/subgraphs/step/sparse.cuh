// Two more algorithms for the gradients of a convolution above another one. They skip the zeros that row_pass() and
// weight_gradient() multiply.
//
// Data gradient: a warp computes a row of x. Its lanes are filters (the terms of the sum) and tiles of channels. A lane
// reads a row of dy once and adds it, shifted, to COLUMNS + S - 1 sums of each channel, so that no padding is
// multiplied. row_pass() over dy makes twice as many multiplications if 5 x 5 filters make 10 x 10 out of 14 x 14. The
// lanes' sums are added when they are read. The filters are those of the forward pass, not rotated.
//
// Weight gradient, behind pooling windows of four or more: dy has at most one number a window. A warp goes through a
// filter's windows one by one, and its lanes are rows of the filter's weights. This takes a quarter of
// weight_gradient()'s multiplications, each of which reads x, and leaves no parts to add.
//
// H200, LeNet-5 at batch 128: both together save 1.9 us of 37.3 a step.
#pragma once

#include "subgraphs/step/shared.cuh"

namespace gpunn::cuda_tiled {

// A number of the convolutions' gradients: of the image, or the sum over the block's images.
template <class B>
__device__ __forceinline__ void put_gradient(float& to, float value) {
  if constexpr (B::kRounds) {
    to += value;
  } else {
    to = value;
  }
}

// The sums of each of COUNT numbers over LANES neighbouring lanes: lane i has COUNT / LANES of them afterwards, from
// the i-th such part on. With each exchange a lane gives half of what it has left and takes the other half.
template <int LANES, int COUNT>
__device__ __forceinline__ void add_over_lanes(float (&values)[COUNT]) {
  static_assert(COUNT % LANES == 0);
  int n = COUNT;
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) {
    n /= 2;
    const bool upper = (threadIdx.x & static_cast<unsigned>(step)) != 0;
#pragma unroll
    for (int i = 0; i < COUNT / 2; ++i) {
      if (i >= n) break;
      const float given = upper ? values[i] : values[i + n];
      const float kept = upper ? values[i + n] : values[i];
      values[i] = kept + __shfl_xor_sync(0xFFFFFFFFU, given, step);
    }
  }
}

template <class B, int S, int COLUMNS>
__device__ __forceinline__ void row_gradient(int layer) {
  constexpr int kSums = COLUMNS + S - 1;
  constexpr int kChannels = kRowChannels;
  float* shared = shared_floats();
  const ConvPlan& conv = shared_plan().conv[layer];
  const RowPass& pass = conv.backward;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int first_filter = lane % kRowLanes;
  const int filters = pass.channels;
  const int rows = pass.rows;
  const int pad = rows - 1 - pass.pad_rows;
  const int a_channel = rows * S * 4;
  const int items = pass.out_rows * conv.row_groups;
#pragma unroll 1
  for (int item = static_cast<int>(threadIdx.x / 32); item < items; item += B::kThreads / 32) {
    const int row = divide(item, conv.by_row_groups);
    const int tile = (item - row * conv.row_groups) * (32 / kRowLanes) + lane / kRowLanes;
    const int first = max(0, row + pad - (pass.x_rows - 1));
    const int last = min(rows - 1, row + pad);
    const int channels = pass.filters - tile * kChannels;  // some may not be there
    float sum[kChannels][kSums] = {};
#pragma unroll 1
    for (int filter = first_filter; filter < filters && tile < pass.filter_tiles; filter += kRowLanes) {
      const float* dy = shared + conv.dy + conv.dy_left + filter * conv.dy_plane + (row + pad - first) * conv.dy_pitch;
      const int filter_tile = conv.forward.filters_a_thread == 3 ? filter / 3 : filter / 4;
      const float* w = shared + conv.forward.w + filter - filter_tile * conv.forward.filters_a_thread +
                       ((filter_tile * pass.filters + tile * kChannels) * rows + first) * S * 4;
#pragma unroll 1
      for (int r = first; r <= last; ++r) {
        float d[COLUMNS];
#pragma unroll
        for (int i = 0; i < COLUMNS; i += 2) {
          const float2 two = *reinterpret_cast<const float2*>(dy + i);
          d[i] = two.x;
          d[i + 1] = two.y;
        }
#pragma unroll
        for (int s = 0; s < S; ++s) {
#pragma unroll
          for (int c = 0; c < kChannels; ++c) {
            const float weight = w[min(c, channels - 1) * a_channel + s * 4];
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i) sum[c][i + s] = fmaf(weight, d[i], sum[c][i + s]);
          }
        }
        dy -= conv.dy_pitch;
        w += S * 4;
      }
    }
    __syncwarp();
    if constexpr (B::kRounds) {
      // Rather than what the lanes have, of which that would be too much for several blocks, their sum.
      constexpr int kCount = (kChannels * kSums + kRowLanes - 1) / kRowLanes * kRowLanes;
      float values[kCount] = {};
#pragma unroll
      for (int i = 0; i < kChannels * kSums; ++i) values[i] = sum[i / kSums][i % kSums];
      add_over_lanes<kRowLanes>(values);
      float* to = shared + pass.sums + (item * (32 / kRowLanes) + lane / kRowLanes) * (kChannels * kSums);
#pragma unroll
      for (int i = 0; i < kCount / kRowLanes; ++i) {
        const int at = lane % kRowLanes * (kCount / kRowLanes) + i;
        if (at < kChannels * kSums) to[at] = values[i];
      }
      continue;
    }
    float* out = shared + pass.sums + item * (kChannels * kSums * kRowPitch) + lane;
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) out[(c * kSums + i) * kRowPitch] = sum[c][i];
    }
  }
}

template <class B>
inline constexpr int kRowTerms = B::kRounds ? 1 : kRowLanes;

// The position of the sum of an element of x, or of the first of its kRowLanes sums.
template <class B>
__device__ __forceinline__ int row_gradient_at(const ConvPlan& conv, int channel, int row, int column) {
  const int tile = channel / kRowChannels;
  const int value = (channel - tile * kRowChannels) * conv.row_sums + column + conv.x_left;
  const int item = row * conv.row_groups + tile / (32 / kRowLanes);
  if constexpr (B::kRounds) {
    return conv.backward.sums + (item * (32 / kRowLanes) + tile % (32 / kRowLanes)) * (kRowChannels * conv.row_sums) +
           value;
  }
  return conv.backward.sums + (item * kRowChannels * conv.row_sums + value) * kRowPitch +
         tile % (32 / kRowLanes) * kRowLanes;
}

// Also of the bias. Items are numbered from the last warp on.
template <class B, int S>
__device__ __forceinline__ void window_gradient(int layer, float* partial, bool own) {
  constexpr int kWarps = B::kThreads / 32;
  const float* shared = shared_floats();
  const ConvPlan& conv = shared_plan().conv[layer];
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int rows = conv.rows;
  const int weight_rows = conv.channels * rows;
  const int windows = conv.pooled_height * conv.pooled_width;
  const int groups = (weight_rows + 31) / 32;
#pragma unroll 1
  for (int item = kWarps - 1 - static_cast<int>(threadIdx.x / 32); item < conv.filters * groups; item += kWarps) {
    const int filter = groups == 1 ? item : item / groups;
    const int weight_row = (item - filter * groups) * 32 + lane;
    const int channel = divide(min(weight_row, weight_rows - 1), conv.by_group_row);
    const int r = min(weight_row, weight_rows - 1) - channel * rows;
    const float* x = shared + conv.x + channel * conv.x_plane + (r - conv.forward.pad_rows) * conv.x_pitch;
    const float2* window = reinterpret_cast<const float2*>(shared + conv.windows) + filter * windows;
    float sum[S] = {};
    float bias = 0.0F;
#pragma unroll 4
    for (int i = 0; i < windows; ++i) {
      const float2 d = window[i];
      const float* from = x + __float_as_int(d.x);
#pragma unroll
      for (int s = 0; s < S; ++s) sum[s] = fmaf(d.y, from[s], sum[s]);
      bias += d.y;
    }
    if (!own || weight_row >= weight_rows) continue;
    float* to = partial + conv.weight_from + filter * conv.filter_floats + weight_row * S;
#pragma unroll
    for (int s = 0; s < S; ++s) put_gradient<B>(to[s], sum[s]);
    if (weight_row == 0) put_gradient<B>(partial[conv.bias_from + filter], bias);
  }
}

// The instances.
template <class B, int S>
__device__ __forceinline__ void run_row_gradient(int layer, int columns) {
  if constexpr (S == 5) {
    if (columns > 8) return row_gradient<B, 5, 10>(layer);
    row_gradient<B, 5, 8>(layer);
  } else {
    if (columns > 10) return row_gradient<B, 3, 14>(layer);
    if (columns > 8) return row_gradient<B, 3, 10>(layer);
    row_gradient<B, 3, 8>(layer);
  }
}

template <class B>
__device__ __forceinline__ void run_row_gradient(int layer) {
  const ConvPlan& conv = shared_plan().conv[layer];
  const int columns = conv.row_sums - conv.columns + 1;
  if constexpr (B::kColumns != kAnyColumns) {
    run_row_gradient<B, B::kColumns>(layer, columns);
  } else {
    if (conv.columns == 5) return run_row_gradient<B, 5>(layer, columns);
    run_row_gradient<B, 3>(layer, columns);
  }
}

template <class B>
__device__ __forceinline__ void run_window_gradient(int layer, float* partial, bool own) {
  if constexpr (B::kColumns != kAnyColumns) {
    window_gradient<B, B::kColumns>(layer, partial, own);
  } else {
    if (shared_plan().conv[layer].columns == 5) return window_gradient<B, 5>(layer, partial, own);
    window_gradient<B, 3>(layer, partial, own);
  }
}

}  // namespace gpunn::cuda_tiled
