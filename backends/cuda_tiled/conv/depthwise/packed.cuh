// Depthwise convolutions of packed images. A thread block copies its tile to shared memory asynchronously, bypassing
// registers; any image width works, since a tile is one contiguous range of memory. Its threads then walk down the
// columns, and neighbouring lanes read neighbouring columns. Several blocks share a multiprocessor, so that some
// compute while others wait.
#pragma once

#include <cuda_runtime.h>

#include "async_copy.cuh"
#include "conv/depthwise/depthwise_plan.hpp"
#include "conv/depthwise/sliding_sums.cuh"
#include "pack.cuh"

namespace gpunn::cuda_tiled::depthwise {

inline constexpr int kPackedThreads = 256;
inline constexpr int kPieceBytes = 16;

// The position of the first element that copy_tile writes: its offset from a multiple of 16 bytes is the same as in
// global memory.
template <class T>
__device__ __forceinline__ int lead_of(const T* from) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(from) % kPieceBytes / sizeof(T));
}

// Copies `count` elements to `to`, which is a multiple of 16 bytes, from its element lead_of(from) on. Planes of
// `plane` elements get `pitch` elements each, and have `pieces` pieces of 16 bytes.
template <class T>
__device__ __forceinline__ void copy_tile(T* to, const T* from, int count, Divider pieces, int pitch, int plane) {
  constexpr int kPiece = kPieceBytes / sizeof(T);
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int lead = lead_of(from);
  const int head = min(lead == 0 ? 0 : kPiece - lead, count);
  const int whole = (count - head) / kPiece;
  const int tail = count - head - whole * kPiece;
  to += lead;
  for (int i = thread; i < whole; i += threads) {
    const int element = head + i * kPiece;
    int place = element;
    if (pitch != plane) {
      const Divider::Result at = pieces(i);
      place = at.quotient * pitch + at.rest * kPiece;
    }
    copy_async<kPieceBytes>(reinterpret_cast<float*>(to + place), reinterpret_cast<const float*>(from + element));
  }
  // Only if planes have no gaps between them.
  if (thread < head) to[thread] = from[thread];
  if (thread < tail) {
    const int element = head + whole * kPiece + thread;
    to[element] = from[element];
  }
}

template <class T, int taps>
__device__ __forceinline__ void load_filter(const T* w, int channel, Weights<taps, 1>& weights) {
  const T* const from = w + int64_t{channel} * taps * taps;
#pragma unroll
  for (int i = 0; i < taps * taps; ++i) weights.at[i / taps][i % taps][0] = static_cast<float>(from[i]);
}

// The rows of a tile that lie in shared memory: of an image's rows those from `first` to before `end`.
template <class T>
struct Rows {
  const T* at;  // the first of them
  int first;
  int end;
  int columns;

  // `count` columns of `row` from `column` on, with zeros outside.
  template <int count>
  __device__ __forceinline__ void read(int row, int column, float (&values)[count][1]) const {
    const bool inside = row >= first && row < end;
    const T* const from = at + (row - first) * columns + column;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const bool there = inside && static_cast<unsigned>(column + i) < static_cast<unsigned>(columns);
      values[i][0] = there ? static_cast<float>(from[i]) : 0.0F;
    }
  }
};

// A block's tile: its planes, and the rows that the threads divide.
struct Tile {
  int64_t plane;  // the first
  int planes;
  int row;
  int end;
};

__device__ __forceinline__ Tile tile_of(const PackedPlan& plan, int64_t number, int64_t planes, int rows) {
  const Divider::Result down = plan.by_tiles(static_cast<int>(number));
  const int64_t plane = int64_t{down.quotient} * plan.planes;
  const int row = down.rest * plan.rows;
  return {.plane = plane,
          .planes = static_cast<int>(min(static_cast<int64_t>(plan.planes), planes - plane)),
          .row = row,
          .end = min(row + plan.rows, rows)};
}

// Calls each(plane, column, row, end) for the thread's columns of the tile: rows from `row` to before `end`.
template <class Each>
__device__ __forceinline__ void for_each_column(const PackedPlan& plan, const Tile& tile, int columns,
                                                const Each& each) {
  const int tasks = plan.planes * plan.chunks * columns;
  for (int task = static_cast<int>(threadIdx.x); task < tasks; task += static_cast<int>(blockDim.x)) {
    const Divider::Result column = plan.by_columns(task);
    const Divider::Result plane = plan.by_planes(column.quotient);
    const int row = tile.row + plane.quotient * plan.chunk;
    if (plane.rest < tile.planes && row < tile.end) {
      each(plane.rest, column.rest, row, min(row + plan.chunk, tile.end));
    }
  }
}

extern __shared__ float4 packed_shared[];

template <class T, int taps, int stride>
__global__ void __launch_bounds__(kPackedThreads)
    forward_packed(const T* __restrict__ x, const T* __restrict__ w, Epilogue epilogue, T* __restrict__ y, Sizes z,
                   PackedPlan plan) {
  using Sums = ForwardSums<taps, stride, 1, 1>;
  T* const shared = reinterpret_cast<T*>(packed_shared);
  const Tile tile = tile_of(plan, blockIdx.x, int64_t{z.batch} * z.channels, z.y_rows);
  const int plane_size = z.x_rows * z.x_columns;
  // The rows of one plane, or all of several planes.
  const bool whole = plan.rows >= z.y_rows;
  const int first = whole ? 0 : min(max(tile.row * stride - z.pad_rows, 0), z.x_rows);
  const int end = whole ? z.x_rows : max(min((tile.end - 1) * stride - z.pad_rows + taps, z.x_rows), first);
  const T* const from = x + tile.plane * plane_size + first * z.x_columns;
  const int lead = lead_of(from);
  copy_tile(shared, from, (tile.planes - 1) * plane_size + (end - first) * z.x_columns, plan.pieces, plan.pitch,
            plane_size);
  commit_copies();
  wait_copies<0>();
  __syncthreads();
  for_each_column(plan, tile, z.y_columns, [&](int plane, int column, int row, int last) {
    const int channel = plan.by_channels(static_cast<int>(tile.plane + plane)).rest;
    Weights<taps, 1> weights;
    load_filter(w, channel, weights);
    const float bias = epilogue.bias == nullptr ? 0.0F : epilogue.bias[channel];
    const Rows<T> rows{shared + lead + plane * plan.pitch, first, end, z.x_columns};
    const int left = column * stride - z.pad_columns;
    T* to = y + (tile.plane + plane) * (int64_t{z.y_rows} * z.y_columns) + row * z.y_columns + column;
    Sums sums;
    sums.clear();
#pragma unroll Sums::kSteps
    for (int a = row; a < last + Sums::kSteps - 1; ++a) {
      float values[Sums::kRead][1];
      rows.read(a * stride - z.pad_rows, left, values);
      sums.template add<0>(values, weights);
      if constexpr (stride == 2) {
        rows.read(a * stride + 1 - z.pad_rows, left, values);
        sums.template add<1>(values, weights);
      }
      if (a >= row + Sums::kSteps - 1) {
        *to = static_cast<T>(rectified(sums.complete()[0][0] + bias, epilogue.relu));
        to += z.y_columns;
      }
      sums.next();
    }
  });
}

template <class T, int taps, int stride, int shift>
__global__ void __launch_bounds__(kPackedThreads)
    data_gradient_packed(const T* __restrict__ dy, const T* __restrict__ w, T* __restrict__ dx, Sizes z,
                         PackedPlan plan) {
  using Sums = DataSums<taps, stride, shift, 1, 1>;
  constexpr int kBack = Sums::kSteps - 1;
  T* const shared = reinterpret_cast<T*>(packed_shared);
  const int groups_down = (z.x_rows + stride - 1) / stride, groups_across = (z.x_columns + stride - 1) / stride;
  const Tile tile = tile_of(plan, blockIdx.x, int64_t{z.batch} * z.channels, groups_down);
  const int plane_size = z.y_rows * z.y_columns;
  const int before_rows = (z.pad_rows + shift) / stride, before_columns = (z.pad_columns + shift) / stride;
  const bool whole = plan.rows >= groups_down;
  const int first = whole ? 0 : min(max(tile.row + before_rows - kBack, 0), z.y_rows);
  const int end = whole ? z.y_rows : max(min(tile.end + before_rows, z.y_rows), first);
  const T* const from = dy + tile.plane * plane_size + first * z.y_columns;
  const int lead = lead_of(from);
  copy_tile(shared, from, (tile.planes - 1) * plane_size + (end - first) * z.y_columns, plan.pieces, plan.pitch,
            plane_size);
  commit_copies();
  wait_copies<0>();
  __syncthreads();
  const bool in_pairs = z.x_columns % 2 == 0 && reinterpret_cast<uintptr_t>(dx) % (2 * sizeof(T)) == 0;
  for_each_column(plan, tile, groups_across, [&](int plane, int group, int row, int last) {
    Weights<taps, 1> weights;
    load_filter(w, plan.by_channels(static_cast<int>(tile.plane + plane)).rest, weights);
    const Rows<T> rows{shared + lead + plane * plan.pitch, first, end, z.y_columns};
    T* to = dx + (tile.plane + plane) * (int64_t{z.x_rows} * z.x_columns) + row * stride * z.x_columns + group * stride;
    Sums sums;
    sums.clear();
#pragma unroll Sums::kSteps
    for (int a = row - kBack; a < last; ++a) {
      float values[Sums::kRead][1];
      rows.read(a + before_rows, group + before_columns - kBack, values);
      sums.add(values, weights);
      if (a >= row) {
#pragma unroll
        for (int b = 0; b < stride; ++b) {
          if (a * stride + b < z.x_rows) {
            const auto& done = sums.complete(0)[b];
            if (stride == 2 && in_pairs) {
              *reinterpret_cast<Pack<T, 2>*>(to) = {static_cast<T>(done[0][0]), static_cast<T>(done[stride - 1][0])};
            } else {
              to[0] = static_cast<T>(done[0][0]);
              if (stride == 2 && group * stride + 1 < z.x_columns) to[1] = static_cast<T>(done[stride - 1][0]);
            }
          }
          to += z.x_columns;
        }
      }
      sums.next();
    }
  });
}

// parts[split][channels][taps][taps]: the sums over the images of each split. A thread has one column of one plane in
// every tile of its block. The next tile is in flight while one is added.
template <class T, int taps, int stride>
__global__ void __launch_bounds__(kPackedThreads)
    weight_gradient_packed(const T* __restrict__ dy, const T* __restrict__ x, float* __restrict__ parts, Sizes z,
                           PackedPlan plan) {
  using Sums = FilterSums<taps, stride, 1, 1>;
  T* const shared = reinterpret_cast<T*>(packed_shared);
  const int x_size = z.x_rows * z.x_columns, y_size = z.y_rows * z.y_columns;
  const Divider::Result block = plan.by_channel_blocks(static_cast<int>(blockIdx.x));  // split, and channels
  const int channel = block.rest * plan.planes;
  const int planes = min(plan.planes, z.channels - channel);
  const bool whole = plan.rows >= z.y_rows;
  struct Stage {
    Tile tile;
    const T *x, *dy;
    int first, end;
  };
  const auto stage_of = [&](int item) {
    const Divider::Result down = plan.by_tiles(item);
    const int64_t plane = int64_t{down.quotient} * z.channels + channel;
    const int row = down.rest * plan.rows;
    Stage stage{.tile = {.plane = plane, .planes = planes, .row = row, .end = min(row + plan.rows, z.y_rows)},
                .x = nullptr,
                .dy = nullptr,
                .first = 0,
                .end = z.x_rows};
    if (!whole) {
      stage.first = min(max(row * stride - z.pad_rows, 0), z.x_rows);
      stage.end = max(min((stage.tile.end - 1) * stride - z.pad_rows + taps, z.x_rows), stage.first);
    }
    stage.x = x + plane * x_size + stage.first * z.x_columns;
    stage.dy = dy + plane * y_size + row * z.y_columns;
    return stage;
  };
  const auto copy = [&](int item, int buffer) {
    const Stage stage = stage_of(item);
    T* const to = shared + buffer * plan.stage;
    const int between = planes - 1;
    copy_tile(to, stage.x, between * x_size + (stage.end - stage.first) * z.x_columns, plan.pieces, x_size, x_size);
    copy_tile(to + plan.x_stage, stage.dy, between * y_size + (stage.tile.end - stage.tile.row) * z.y_columns,
              plan.pieces, y_size, y_size);
  };
  const int items = z.batch * static_cast<int>(plan.by_tiles.by);
  Sums sums;
  sums.clear();
  int item = block.quotient;
  int buffer = 0;
  if (item < items) copy(item, buffer);
  commit_copies();
  for (; item < items; item += plan.splits, buffer ^= 1) {
    if (item + plan.splits < items) copy(item + plan.splits, buffer ^ 1);
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    const Stage stage = stage_of(item);
    const T* const at = shared + buffer * plan.stage;
    for_each_column(plan, stage.tile, z.y_columns, [&](int plane, int column, int row, int last) {
      const Rows<T> rows{at + lead_of(stage.x) + plane * x_size, stage.first, stage.end, z.x_columns};
      const T* dy_at =
          at + plan.x_stage + lead_of(stage.dy) + plane * y_size + (row - stage.tile.row) * z.y_columns + column;
      const int left = column * stride - z.pad_columns;
      sums.forget();
#pragma unroll Sums::kSteps
      for (int a = row; a < last + Sums::kSteps - 1; ++a) {
        const float dy_value[1][1] = {{a < last ? static_cast<float>(*dy_at) : 0.0F}};
        dy_at += z.y_columns;
        sums.step(dy_value);
        float values[Sums::kRead][1];
        rows.read(a * stride - z.pad_rows, left, values);
        sums.template add<0>(values);
        if constexpr (stride == 2) {
          rows.read(a * stride + 1 - z.pad_rows, left, values);
          sums.template add<1>(values);
        }
      }
    });
    __syncthreads();
  }
  // The threads of a plane add their sums in a fixed order, given by their numbers.
  auto* const sum = reinterpret_cast<float*>(packed_shared);
  const Divider::Result column = plan.by_columns(static_cast<int>(threadIdx.x));
  const Divider::Result plane = plan.by_planes(column.quotient);
  const int of_plane = z.y_columns * plan.chunks;
  const int place = plane.quotient * z.y_columns + column.rest;  // in the plane
  const bool active = plane.quotient < plan.chunks;
  const int threads = static_cast<int>(blockDim.x);
  const int at = plane.rest * of_plane + place;
  int half = 1;
  while (half < of_plane) half *= 2;
#pragma unroll
  for (int r = 0; r < taps; ++r) {
    __syncthreads();
    if (active) {
#pragma unroll
      for (int s = 0; s < taps; ++s) sum[s * threads + at] = sums.sum[r][s][0];
    }
    for (int h = half / 2; h > 0; h /= 2) {
      __syncthreads();
      if (active && place < h && place + h < of_plane) {
#pragma unroll
        for (int s = 0; s < taps; ++s) sum[s * threads + at] += sum[s * threads + at + h];
      }
    }
    if (!active || place > 0 || plane.rest >= planes) continue;
    const int64_t filter = int64_t{block.quotient} * z.channels + channel + plane.rest;
#pragma unroll
    for (int s = 0; s < taps; ++s) parts[(filter * taps + r) * taps + s] = sum[s * threads + at];
  }
}

}  // namespace gpunn::cuda_tiled::depthwise
