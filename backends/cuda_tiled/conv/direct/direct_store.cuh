// The stores of a direct convolution: rows of a plane, and their maxima if MAX_POOL2D follows.
#pragma once

#include <cmath>
#include <cstdint>

#include <cuda_runtime.h>

#include "divider.cuh"
#include "epilogue.cuh"

namespace gpunn::cuda_tiled::direct {

// Which accesses may move several floats.
struct Widths {
  int in;  // floats
  bool out_fours;
  bool out_twos;
};

// Stores n floats of a row, or the `left` that remain of it.
template <int n>
__device__ __forceinline__ void store_row(float* to, const float (&from)[n], int left, bool fours, bool twos) {
  if (fours && n % 4 == 0) {
#pragma unroll
    for (int i = 0; i + 3 < n; i += 4) {
      if (i < left) *reinterpret_cast<float4*>(to + i) = make_float4(from[i], from[i + 1], from[i + 2], from[i + 3]);
    }
  } else if (twos && n % 2 == 0) {
#pragma unroll
    for (int i = 0; i + 1 < n; i += 2) {
      if (i < left) *reinterpret_cast<float2*>(to + i) = make_float2(from[i], from[i + 1]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < n; ++i) {
      if (i < left) to[i] = from[i];
    }
  }
}

// MAX_POOL2D of a block's output, which consists of whole planes.
struct Pooling {
  float* pooled;
  bool halves;        // windows of 2x2 side by side, which cover everything
  int rows, columns;  // of an image of it
  int window[2], stride[2], pad[2];
  Divider by_plane, by_columns;
};

// Whether b replaces a as the maximum; a NaN does.
__device__ __forceinline__ bool beats(float b, float a) { return b > a || b != b; }

// All threads of the block call it, after they have written `planes` planes to shared memory.
__device__ __forceinline__ void pool_planes(const float* from, const Pooling& z, int rows, int columns, int planes,
                                            float* to) {
  const int count = planes * z.rows * z.columns;
  if (z.halves) {
#pragma unroll 2
    for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
      const auto [row, column] = z.by_columns(i);
      const float* const at = from + 2 * row * columns + 2 * column;
      const float2 above = *reinterpret_cast<const float2*>(at);
      const float2 below = *reinterpret_cast<const float2*>(at + columns);
      float most = above.x;
      if (beats(above.y, most)) most = above.y;
      if (beats(below.x, most)) most = below.x;
      if (beats(below.y, most)) most = below.y;
      to[i] = most;
    }
    return;
  }
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    const auto [plane, output] = z.by_plane(i);
    const auto [p, q] = z.by_columns(output);
    const int top = p * z.stride[0] - z.pad[0];
    const int left = q * z.stride[1] - z.pad[1];
    float most = -INFINITY;
#pragma unroll 1
    for (int row = max(top, 0); row < min(top + z.window[0], rows); ++row) {
#pragma unroll 1
      for (int column = max(left, 0); column < min(left + z.window[1], columns); ++column) {
        const float value = from[(plane * rows + row) * columns + column];
        if (beats(value, most)) most = value;
      }
    }
    to[i] = most;
  }
}

}  // namespace gpunn::cuda_tiled::direct
