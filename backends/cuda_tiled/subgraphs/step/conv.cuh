// The convolutions of one image in shared memory, by the threads of a block, in a fused training step.
//
// A thread keeps TILE neighbouring outputs of a row, for 3 or 4 filters, in registers. For each row of the filter it
// reads TILE + S - 1 numbers of x once and slides over them, with S * TILE multiplications a filter. That is 105 to 140
// multiplications for some 16 reads from shared memory; with one output a thread each product would take two reads.
// Neighbouring threads have neighbouring strips and rows and the same filters, so that the weights are one broadcast.
// The pitch of a row avoids bank conflicts (plan.cpp). Rows of padding are never multiplied; columns of padding
// are zeros in memory.
//
// The data gradient is the same pass over dy with the filters rotated by 180 degrees. The weight gradient slides over x
// likewise: a thread has S * FILTERS sums of one row of the filter. sparse.cuh has other ways to compute both.
#pragma once

#include <type_traits>

#include "subgraphs/step/shared.cuh"

namespace gpunn::cuda_tiled {

// S: columns of the filter; 0: any number.
template <class B, int S, int TILE, int FILTERS>
__device__ __forceinline__ void row_pass(int layer, bool backward) {
  float* shared = shared_floats();
  const RowPass& pass = backward ? shared_plan().conv[layer].backward : shared_plan().conv[layer].forward;
  const int columns = S != 0 ? S : pass.columns;
  const int x_pitch = pass.x_pitch;
  const int rows = pass.rows;
  const int items = pass.strips * pass.out_rows * pass.filter_tiles * pass.splits;
#pragma unroll 1
  for (int item = static_cast<int>(threadIdx.x); item < items; item += B::kThreads) {
    const int split = divide(item, pass.by_split);
    const int in_split = item - split * (pass.strips * pass.out_rows * pass.filter_tiles);
    const int filter_tile = divide(in_split, pass.by_filter_tile);
    const int place = in_split - filter_tile * (pass.strips * pass.out_rows);
    const int row = divide(place, pass.by_strip);
    const int from = (place - row * pass.strips) * TILE;
    const int first = max(0, pass.pad_rows - row);
    const int last = min(rows, pass.x_rows + pass.pad_rows - row);
    const int begin = divide(pass.channels * split, pass.by_splits);
    const int end = divide(pass.channels * (split + 1), pass.by_splits);
    const float* plane = shared + pass.x + begin * pass.x_plane + (row + first - pass.pad_rows) * x_pitch + from;
    const float* filter = shared + pass.w + ((filter_tile * pass.channels + begin) * rows + first) * columns * 4;
    float sum[FILTERS][TILE] = {};
#pragma unroll 1
    for (int channel = begin; channel < end; ++channel) {
      const float* x = plane;
      const float* w = filter;
#pragma unroll 1
      for (int r = first; r < last; ++r) {
        if constexpr (S != 0) {
          float v[TILE + S - 1];
          float4 fours[S];
#pragma unroll
          for (int i = 0; i < TILE + S - 1; ++i) v[i] = x[i];
#pragma unroll
          for (int s = 0; s < S; ++s) fours[s] = *reinterpret_cast<const float4*>(w + s * 4);
#pragma unroll
          for (int s = 0; s < S; ++s) {
            const float4 four = fours[s];
            const float weight[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int f = 0; f < FILTERS; ++f) {
#pragma unroll
              for (int i = 0; i < TILE; ++i) sum[f][i] = fmaf(weight[f], v[i + s], sum[f][i]);
            }
          }
        } else {
#pragma unroll 1
          for (int s = 0; s < columns; ++s) {
            const float4 four = *reinterpret_cast<const float4*>(w + s * 4);
            const float weight[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int i = 0; i < TILE; ++i) {
              const float value = x[i + s];
#pragma unroll
              for (int f = 0; f < FILTERS; ++f) sum[f][i] = fmaf(weight[f], value, sum[f][i]);
            }
          }
        }
        x += x_pitch;
        w += columns * 4;
      }
      plane += pass.x_plane;
      filter += rows * columns * 4;
    }
    const int filters = pass.filters;
    const int a_filter = pass.out_rows * pass.pitch;
    float* out = shared + pass.sums + (split * filters + filter_tile * FILTERS) * a_filter + row * pass.pitch + from;
#pragma unroll
    for (int f = 0; f < FILTERS; ++f) {
      if (filter_tile * FILTERS + f < filters) {
#pragma unroll
        for (int i = 0; i < TILE; ++i) out[f * a_filter + i] = sum[f][i];
      }
    }
  }
}

// Sums of dy times x over a share of dy's rows, at sums[split][filter][channel][row][column]. A thread slides along a
// row: of x it reads each number once, 8 bytes at a time, as of dy, whose reads are broadcasts. Threads are numbered
// from `thread`, so that those that had least to do in the pass before can begin.
template <class B, int S, int FILTERS>
__device__ __forceinline__ void weight_gradient(int layer, int thread) {
  float* shared = shared_floats();
  const ConvPlan& conv = shared_plan().conv[layer];
  const RowPass& pass = conv.gradient;
  constexpr int kColumns = S != 0 ? S : 7;
  constexpr int kKept = kColumns / 2 * 2;  // what the next outputs need again, and no odd number
  const int columns = S != 0 ? S : pass.columns;
  const int width = pass.strips;
  const int dy_pitch = conv.dy_pitch;
  const int x_pitch = pass.x_pitch;
  const int a_split = pass.rows * pass.channels * pass.filter_tiles;
#pragma unroll 1
  for (int item = thread; item < a_split * pass.splits; item += B::kThreads) {
    const int split = divide(item, pass.by_split);
    const int place = item - split * a_split;
    const int filter_tile = divide(place, conv.by_group);
    const int in_tile = place - filter_tile * (pass.rows * pass.channels);
    const int channel = divide(in_tile, conv.by_group_row);
    const int r = in_tile - channel * pass.rows;
    const int filter = filter_tile * FILTERS;
    // Rows of dy whose row of x is within the image.
    const int first = max(divide(pass.out_rows * split, pass.by_splits), pass.pad_rows - r);
    const int last = min(divide(pass.out_rows * (split + 1), pass.by_splits), pass.x_rows + pass.pad_rows - r);
    const float* x = shared + pass.x + channel * pass.x_plane + (first + r - pass.pad_rows) * x_pitch;
    const float* dy[FILTERS];
#pragma unroll
    for (int f = 0; f < FILTERS; ++f) {
      dy[f] = shared + pass.w + first * dy_pitch + conv.dy_left + min(filter + f, pass.filters - 1) * conv.dy_plane;
    }
    float sum[FILTERS][kColumns] = {};
#pragma unroll 1
    for (int row = first; row < last; ++row) {
      float v[kKept + 4];
      const auto slide = [&]<int OUTPUTS>(int from, std::integral_constant<int, OUTPUTS>) {
#pragma unroll
        for (int i = 0; i < OUTPUTS; i += 2) {
          const float2 two = *reinterpret_cast<const float2*>(x + from + kKept + i);
          v[kKept + i] = two.x;
          v[kKept + i + 1] = two.y;
        }
#pragma unroll
        for (int f = 0; f < FILTERS; ++f) {
#pragma unroll
          for (int i = 0; i < OUTPUTS; i += 2) {
            const float2 two = *reinterpret_cast<const float2*>(dy[f] + from + i);
#pragma unroll
            for (int s = 0; s < kColumns; ++s) sum[f][s] = fmaf(two.x, v[i + s], sum[f][s]);
#pragma unroll
            for (int s = 0; s < kColumns; ++s) sum[f][s] = fmaf(two.y, v[i + 1 + s], sum[f][s]);
          }
        }
#pragma unroll
        for (int i = 0; i < kKept; ++i) v[i] = v[i + OUTPUTS];
      };
#pragma unroll
      for (int i = 0; i < kKept; i += 2) {
        const float2 two = *reinterpret_cast<const float2*>(x + i);
        v[i] = two.x;
        v[i + 1] = two.y;
      }
      int from = 0;
#pragma unroll 1
      for (; from + 4 <= width; from += 4) slide(from, std::integral_constant<int, 4>{});
      if (from < width) slide(from, std::integral_constant<int, 2>{});
#pragma unroll
      for (int f = 0; f < FILTERS; ++f) dy[f] += dy_pitch;
      x += x_pitch;
    }
    const int a_filter = pass.channels * pass.rows * columns;
    float* out = shared + pass.sums + split * pass.pitch + filter * a_filter + (channel * pass.rows + r) * columns;
#pragma unroll
    for (int f = 0; f < FILTERS; ++f) {
      if (filter + f < pass.filters) {
#pragma unroll
        for (int s = 0; s < kColumns; ++s) {
          if (S != 0 || s < columns) out[f * a_filter + s] = sum[f][s];
        }
      }
    }
  }
}

// The instances. Not by a number of their own: a switch jumps by way of a table, which is in no cache when it is
// needed.
template <class B, int S, int TILE>
__device__ __forceinline__ void run_row_pass(int layer, bool backward, const RowPass& pass) {
  if (pass.filters_a_thread < 4) return row_pass<B, S, TILE, 3>(layer, backward);
  row_pass<B, S, TILE, 4>(layer, backward);
}

template <class B, int S>
__device__ __forceinline__ void run_row_pass(int layer, bool backward, const RowPass& pass) {
  if (pass.tile > 7) return run_row_pass<B, S, 8>(layer, backward, pass);
  if (pass.tile > 5) return run_row_pass<B, S, 7>(layer, backward, pass);
  run_row_pass<B, S, 5>(layer, backward, pass);
}

template <class B>
__device__ __forceinline__ void run_row_pass(int layer, bool backward) {
  const RowPass& pass = backward ? shared_plan().conv[layer].backward : shared_plan().conv[layer].forward;
  if constexpr (B::kColumns != kAnyColumns) {
    run_row_pass<B, B::kColumns>(layer, backward, pass);
  } else {
    if (pass.columns == 5) return run_row_pass<B, 5>(layer, backward, pass);
    if (pass.columns == 3) return run_row_pass<B, 3>(layer, backward, pass);
    run_row_pass<B, 0>(layer, backward, pass);
  }
}

template <class B, int S>
__device__ __forceinline__ void run_weight_gradient(int layer, int thread) {
  if (shared_plan().conv[layer].gradient.filters_a_thread < 4) return weight_gradient<B, S, 3>(layer, thread);
  weight_gradient<B, S, 4>(layer, thread);
}

template <class B>
__device__ __forceinline__ void run_weight_gradient(int layer, int thread) {
  if constexpr (B::kColumns != kAnyColumns) {
    run_weight_gradient<B, B::kColumns>(layer, thread);
  } else {
    const int columns = shared_plan().conv[layer].columns;
    if (columns == 5) return run_weight_gradient<B, 5>(layer, thread);
    if (columns == 3) return run_weight_gradient<B, 3>(layer, thread);
    run_weight_gradient<B, 0>(layer, thread);
  }
}

}  // namespace gpunn::cuda_tiled
