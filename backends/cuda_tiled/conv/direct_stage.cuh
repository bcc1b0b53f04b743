// What the direct convolutions for few channels share: images brought into shared memory with their border of zeros.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "divider.cuh"

namespace gpunn::cuda_tiled::direct {

constexpr int ceil_div(int n, int by) { return (n + by - 1) / by; }
constexpr int four_fold(int n) { return (n + 3) / 4 * 4; }

// Floats from row to row: a multiple of four, and an odd number of fours, so that eight neighbouring rows lie in
// different banks.
constexpr int odd_pitch(int columns) {
  return four_fold(columns) % 8 == 0 ? four_fold(columns) + 4 : four_fold(columns);
}

// Rows of the planes of some images, [image][channel][row], with a border of zeros, as they lie in shared memory.
struct Stage {
  int channels = 0;  // of a group
  int groups = 1;
  int in_rows = 0, in_columns = 0;
  int pad_r = 0, pad_s = 0;
  int rows = 0;   // in shared memory, of a plane
  int quads = 0;  // fours of floats in shared memory, of a row
  int pitch = 0;  // floats
  int plane = 0;  // floats
  Divider by_quads, by_rows, by_channels;

  void finish() {
    by_quads = Divider(quads);
    by_rows = Divider(rows);
    by_channels = Divider(channels);
  }
  constexpr int64_t floats(int64_t images) const { return images * channels * plane; }
};

// Begins to bring `images` images from `first` on, rows from first_row on, to shared memory; __pipeline_commit() and
// __pipeline_wait_prior() are the caller's. `fours`: rows begin at multiples of 16 bytes on both sides.
__device__ __forceinline__ void stage_images(float* to, const float* from, const Stage& z, int first, int images,
                                             int group, int first_row, bool fours) {
  const int count = images * z.channels * z.rows * z.quads;
  const int64_t plane = static_cast<int64_t>(z.in_rows) * z.in_columns;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    const auto [row_index, quad] = z.by_quads(i);
    const auto [plane_index, row] = z.by_rows(row_index);
    const auto [image, channel] = z.by_channels(plane_index);
    const int in_row = first_row + row - z.pad_r;
    const int in_column = quad * 4 - z.pad_s;
    const bool row_there = in_row >= 0 && in_row < z.in_rows;
    const float* const source =
        from + ((static_cast<int64_t>(first + image) * z.groups + group) * z.channels + channel) * plane +
        (row_there ? in_row : 0) * z.in_columns;
    float* const target = to + plane_index * z.plane + row * z.pitch + quad * 4;
    if (fours) {
      const bool there = row_there && in_column >= 0 && in_column < z.in_columns;
      __pipeline_memcpy_async(target, source + (there ? in_column : 0), 16, there ? 0 : 16);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const bool there = row_there && in_column + j >= 0 && in_column + j < z.in_columns;
        __pipeline_memcpy_async(target + j, source + (there ? in_column + j : 0), 4, there ? 0 : 4);
      }
    }
  }
}

inline bool in_fours(const void* data, const Stage& z) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0 && z.in_columns % 4 == 0 && z.pad_s % 4 == 0;
}

template <int n>
__device__ __forceinline__ void load_fours(float (&to)[n], const float* from) {
  static_assert(n % 4 == 0);
#pragma unroll
  for (int i = 0; i < n; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(from + i);
    to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
  }
}

}  // namespace gpunn::cuda_tiled::direct
