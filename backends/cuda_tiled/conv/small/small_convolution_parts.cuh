// Building blocks of small_convolution_kernel.cuh: fragments and their products, the barriers of a cluster, the
// positions of a pixel's taps, and copies to shared memory.
#pragma once

#include <cstdint>

#include "conv/small/small_convolution.hpp"
#include "conv/wgmma/instructions.cuh"

namespace gpunn::cuda_tiled::small {

#ifdef GPUNN_CONV_TENSOR_CORES

// Four matrices of 8 rows of 4 floats, the rows of matrix i named by lanes 8 * i to 8 * i + 7. Each lane gets of each
// the float lane % 4 of row lane / 4.
__device__ __forceinline__ void load_matrices(uint32_t (&to)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row));
}

__device__ __forceinline__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The cluster's barrier. All threads see the writes to shared memory before it; in relaxed form this is not guaranteed.
__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ void meet_cluster_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// A column of pixels: the position of its first tap in channel 0 of its image, possibly outside the image, and the taps
// inside.
struct TapPixel {
  int from;
  uint32_t taps;
};

// Tap t of output `index` of all images, in x.
template <Source kSource>
__device__ __forceinline__ TapPixel input_pixel(const Plan& plan, int index) {
  const auto [image, place] = plan.by_output_plane(index);
  const auto [row, column] = plan.by_output_columns(place);
  const int first_row = row * plan.row_stride - plan.row_pad;
  const int first_column = column * plan.column_stride - plan.column_pad;
  TapPixel pixel{image * plan.inputs * plan.input_plane + first_row * plan.input_columns + first_column, 1};
  if constexpr (kSource != Source::kTaps) return pixel;
  uint32_t of_row = 0;
  for (int tap = 0, x = first_column; tap < plan.column_taps; ++tap, x += plan.column_dilation) {
    if (x >= 0 && x < plan.input_columns) of_row |= 1U << tap;
  }
  pixel.taps = 0;
  for (int tap = 0, y = first_row; tap < plan.taps; tap += plan.column_taps, y += plan.row_dilation) {
    if (y >= 0 && y < plan.input_rows) pixel.taps |= of_row << tap;
  }
  return pixel;
}

__device__ __forceinline__ int input_offset(const Plan& plan, int tap) {
  const int row = tap / plan.column_taps;
  return row * plan.row_dilation * plan.input_columns + (tap - row * plan.column_taps) * plan.column_dilation;
}

// The output whose tap t is input `index` of all images, in dy. Of a stride only some taps have one; of those that
// have, the outputs' distance is the taps' over the stride, rounded down.
__device__ __forceinline__ TapPixel output_pixel(const Plan& plan, int index) {
  const auto [image, place] = plan.by_pixel_plane(index);
  const auto [row, column] = plan.by_pixel_columns(place);
  const int last_row = row + plan.row_pad;
  const int last_column = column + plan.column_pad;
  TapPixel pixel{image * plan.outputs * plan.output_plane + last_row / plan.row_stride * plan.output_columns +
                     last_column / plan.column_stride,
                 0};
  uint32_t of_row = 0;
  for (int tap = 0, x = last_column; tap < plan.column_taps && x >= 0; ++tap, x -= plan.column_dilation) {
    if (x % plan.column_stride == 0 && x / plan.column_stride < plan.output_columns) of_row |= 1U << tap;
  }
  for (int tap = 0, y = last_row; tap < plan.taps && y >= 0; tap += plan.column_taps, y -= plan.row_dilation) {
    if (y % plan.row_stride == 0 && y / plan.row_stride < plan.output_rows) pixel.taps |= of_row << tap;
  }
  return pixel;
}

__device__ __forceinline__ int output_offset(const Plan& plan, int tap) {
  const int row = tap / plan.column_taps;
  return -(row * plan.row_dilation / plan.row_stride * plan.output_columns +
           (tap - row * plan.column_taps) * plan.column_dilation / plan.column_stride);
}

// Writes zeros if not valid; `from` is then not read and may be any address.
template <int kBytes>
__device__ __forceinline__ void copy(uint32_t to, const float* from, bool valid) {
  if constexpr (kBytes == 16) {
    tensor::copy_vector(to, from, valid);
  } else {
    tensor::copy_float(to, from, valid);
  }
}

// Rows of `from`, `pitch` apart, to rows of a tile: kLength floats from the column at which `from` stands, by fours, of
// which `rows` rows and `columns` columns exist.
template <int kThreads, int kRows, int kLength, int kPitch>
__device__ __forceinline__ void copy_rows(uint32_t to, const float* from, int pitch, int rows, int columns) {
  constexpr int kVectors = kLength / 4;
  const int vector = static_cast<int>(threadIdx.x) % kVectors;
  const int first = static_cast<int>(threadIdx.x) / kVectors;
  from += first * pitch + vector * 4;
  to += static_cast<uint32_t>(first * kPitch + vector * 4) * 4;
#pragma unroll
  for (int i = 0; i < kRows; i += kThreads / kVectors) {
    const bool valid = vector * 4 < columns && first + i < rows;
    copy<16>(to + static_cast<uint32_t>(i * kPitch) * 4, from + int64_t{i} * pitch, valid);
  }
}

#endif

}  // namespace gpunn::cuda_tiled::small
