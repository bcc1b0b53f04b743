// Shared by the fused Winograd kernels: a thread block's 16 small matrix products, one for each point of the 4x4
// transforms.
//
// A block of 256 threads holds 16 products of 64 rows x 32 columns in registers. Half a warp has one point, and a
// thread 16 x 8 sums. For each step of the reduction a thread loads 24 numbers in six 16-byte loads for 128 products; a
// usual tile of 8 x 8 loads 16 for 64. A load of the warp reads 64 bytes of each of its two points. The odd point takes
// the pieces in another order (j ^ 1), so that the two use different banks.
#pragma once

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled::winograd {

inline constexpr int kThreads = 256;
inline constexpr int kPoints = 16;   // of F(2x2, 3x3) and F(3x3, 2x2)
inline constexpr int kRows = 64;     // of a block's products
inline constexpr int kColumns = 32;  // of a block's products
inline constexpr int kDepth = 8;     // steps of the reduction that a stage in shared memory holds
inline constexpr int kThreadRows = 16;
inline constexpr int kThreadColumns = 8;

// The position of a thread's sums: point `point`, rows row(i) and columns column(j).
struct Place {
  int half;
  int point;
  int row_lane;
  int column_lane;

  __device__ Place()
      : half(threadIdx.x >> 4 & 1),
        point(static_cast<int>(threadIdx.x >> 4)),
        row_lane(threadIdx.x >> 2 & 3),
        column_lane(threadIdx.x & 3) {}
  __device__ int row(int i) const { return ((i / 4) ^ half) * 16 + row_lane * 4 + i % 4; }
  __device__ int column(int j) const { return ((j / 4) ^ half) * 16 + column_lane * 4 + j % 4; }
};

using Sums = float[kThreadRows][kThreadColumns];

template <int n>
struct Fragment {
  float4 piece[n / 4];
  __device__ float operator[](int i) const {
    const float4& p = piece[i / 4];
    return i % 4 == 0 ? p.x : i % 4 == 1 ? p.y : i % 4 == 2 ? p.z : p.w;
  }
  // `even` and `odd` are where pieces 0 and 1 are; the others follow 32 numbers behind each.
  __device__ void load(const float* even, const float* odd) {
#pragma unroll
    for (int j = 0; j < n / 4; ++j) {
      piece[j] = *reinterpret_cast<const float4*>((j % 2 == 0 ? even : odd) + j / 2 * 32);
    }
  }
};

// sums += a[step][point][row] * b[step][point][column], over the steps of a stage.
template <int a_stride, int b_stride>
__device__ __forceinline__ void multiply(const float* a, const float* b, const Place& place, Sums& sums) {
  const float* a_even = a + place.point * kRows + place.row(0);
  const float* a_odd = a + place.point * kRows + place.row(4);
  const float* b_even = b + place.point * kColumns + place.column(0);
  const float* b_odd = b + place.point * kColumns + place.column(4);
  Fragment<kThreadRows> left[2];
  Fragment<kThreadColumns> right[2];
  left[0].load(a_even, a_odd);
  right[0].load(b_even, b_odd);
#pragma unroll
  for (int step = 0; step < kDepth; ++step) {
    const int now = step % 2;
    if (step + 1 < kDepth) {
      left[1 - now].load(a_even + (step + 1) * a_stride, a_odd + (step + 1) * a_stride);
      right[1 - now].load(b_even + (step + 1) * b_stride, b_odd + (step + 1) * b_stride);
    }
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j) sums[i][j] = fmaf(left[now][i], right[now][j], sums[i][j]);
    }
  }
}

// The sums of a point lie in the registers of half a warp, and the inverse transform needs all points of an element. So
// they go through shared memory, 32 rows at a time, as [point][row][column]. The padding spreads the rows over the
// banks.
inline constexpr int kExchangeRow = kColumns + 4;
inline constexpr int kExchangePoint = 32 * kExchangeRow;
inline constexpr int kExchange = kPoints * kExchangePoint;

template <int first_row>
__device__ __forceinline__ void store_exchange(float* exchange, const Place& place, const Sums& sums) {
  float* point = exchange + place.point * kExchangePoint;
#pragma unroll
  for (int i = first_row / 4; i < first_row / 4 + 8; ++i) {
#pragma unroll
    for (int j = 0; j < kThreadColumns; j += 4) {
      *reinterpret_cast<float4*>(point + (place.row(i) - first_row) * kExchangeRow + place.column(j)) =
          make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
    }
  }
}

__device__ __forceinline__ void load_exchange(const float* exchange, int row, int column, float (&points)[kPoints]) {
#pragma unroll
  for (int p = 0; p < kPoints; ++p) points[p] = exchange[p * kExchangePoint + row * kExchangeRow + column];
}

// One dimension of the transform of four neighbouring inputs: rows of B^T.
__device__ __forceinline__ void transform_four(float& a, float& b, float& c, float& d) {
  const float first = a - c;
  const float second = b + c;
  const float third = c - b;
  const float fourth = b - d;
  a = first;
  b = second;
  c = third;
  d = fourth;
}

__device__ __forceinline__ void transform_patch(float (&d)[kPoints]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) transform_four(d[j], d[4 + j], d[8 + j], d[12 + j]);
#pragma unroll
  for (int i = 0; i < 4; ++i) transform_four(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]);
}

}  // namespace gpunn::cuda_tiled::winograd
