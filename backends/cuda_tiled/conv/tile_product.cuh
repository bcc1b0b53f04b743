// A thread block's matrix product from shared memory, with the sums in registers. A thread has 8 x 8 sums and a warp 32
// rows x 64 columns. In the smallest tile these are 8 x 4 and 32 x 32, so that a block has warps for all four
// schedulers of a multiprocessor.
#pragma once

#include <cstdint>

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

namespace gpunn::cuda_tiled::conv {

template <int rows, int columns>
struct TileShape {
  static constexpr bool kSmallest = rows * columns == 64 * 64;
  static constexpr int kThreadRows = 8;
  static constexpr int kThreadColumns = kSmallest ? 4 : 8;
  static constexpr int kThreads = rows * columns / (kThreadRows * kThreadColumns);
  static constexpr int kResident = kSmallest ? 5 : 512 / kThreads;  // blocks of a multiprocessor, by their registers
  static constexpr int kWarpRows = 32;
  static constexpr int kWarpColumns = 8 * kThreadColumns;
  static_assert(rows % kWarpRows == 0 && columns % kWarpColumns == 0);
  using Sums = float[kThreadRows][kThreadColumns];
};

// The position of a thread's sums: pieces of four, half a warp's tile apart, so that a warp's loads of shared memory
// read neighbouring numbers.
template <class Shape, int rows>
struct TilePlace {
  int first_row;
  int first_column;

  __device__ TilePlace() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    first_row = warp % (rows / Shape::kWarpRows) * Shape::kWarpRows + lane / 8 * 4;
    first_column = warp / (rows / Shape::kWarpRows) * Shape::kWarpColumns + lane % 8 * 4;
  }
  __device__ int row(int i) const { return first_row + i / 4 * 16 + i % 4; }
  __device__ int column(int j) const { return first_column + j / 4 * 32 + j % 4; }
};

// Loads n numbers in pieces of four, `apart` numbers apart.
template <int n, int apart>
struct Fragment {
  float value[n];
  __device__ __forceinline__ void load(const float* from) {
#pragma unroll
    for (int i = 0; i < n; i += 4) {
      const float4 piece = *reinterpret_cast<const float4*>(from + i / 4 * apart);
      value[i] = piece.x, value[i + 1] = piece.y, value[i + 2] = piece.z, value[i + 3] = piece.w;
    }
  }
};

// sums += a[step][row] * b[step][column] over `depth` steps, whose rows are a_stride and b_stride apart.
template <class Shape, int depth, int a_stride, int b_stride, class Place>
__device__ __forceinline__ void multiply_tile(const float* a, const float* b, const Place& place,
                                              typename Shape::Sums& sums) {
  const float* left = a + place.row(0);
  const float* right = b + place.column(0);
  Fragment<Shape::kThreadRows, 16> x[2];
  Fragment<Shape::kThreadColumns, 32> y[2];
  x[0].load(left);
  y[0].load(right);
#pragma unroll
  for (int step = 0; step < depth; ++step) {
    const int now = step % 2;
    if (step + 1 < depth) {
      x[1 - now].load(left + (step + 1) * a_stride);
      y[1 - now].load(right + (step + 1) * b_stride);
    }
#pragma unroll
    for (int i = 0; i < Shape::kThreadRows; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::kThreadColumns; ++j) {
        sums[i][j] = fmaf(x[now].value[i], y[now].value[j], sums[i][j]);
      }
    }
  }
}

// Copies of `depth` lines of a matrix, of `width` numbers each, to shared memory, stage after stage: pointers move, so
// that a copy costs little more than itself. Lines and numbers outside become zeros.
template <int width, int depth, int threads>
class LineCopies {
 public:
  // Lines from `first_line` up to `last_line`, numbers from `first` on.
  __device__ LineCopies(const float* matrix, int line_length, int first_line, int last_line, int first)
      : line_(static_cast<int>(threadIdx.x) / kPieces),
        place_(static_cast<int>(threadIdx.x) % kPieces * 4),
        length_(line_length),
        left_(first + place_ < line_length ? last_line - first_line - line_ : 0),
        next_(matrix + static_cast<int64_t>(first_line + line_) * line_length + first + place_) {}

  __device__ __forceinline__ void copy(float (&to)[depth][width]) {
#pragma unroll
    for (int i = 0; i < depth; i += kLines) {
      __pipeline_memcpy_async(&to[line_ + i][place_], next_ + static_cast<int64_t>(i) * length_, 16,
                              i < left_ ? 0 : 16);
    }
    next_ += static_cast<int64_t>(depth) * length_;
    left_ -= depth;
  }

 private:
  static constexpr int kPieces = width / 4;
  static constexpr int kLines = threads / kPieces;  // that the block copies at once
  static_assert(threads % kPieces == 0 && depth % kLines == 0);
  int line_;
  int place_;
  int length_;
  int left_;
  const float* next_;
};

}  // namespace gpunn::cuda_tiled::conv
