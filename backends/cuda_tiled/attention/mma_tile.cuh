// The two matrix products of an attention tile on tensor cores. A warp computes 16 of 64 rows. Each thread's scores
// after the first product are, once rounded, exactly its operands for the second product, so they stay in registers.
#pragma once

#include <cstdint>
#include <type_traits>

#include "fragments.cuh"

namespace gpunn::cuda_tiled {

// Input is __nv_bfloat16, __half, or Tf32 for f32 in memory.
template <class Input, int width_, int columns_>
struct AttentionTile {
  static constexpr bool kHalf = !std::is_same_v<Input, Tf32>;
  using Element = std::conditional_t<kHalf, Input, float>;
  static constexpr int kWidth = width_;      // of a row of q, k, v: 32, 64 or 128
  static constexpr int kColumns = columns_;  // of the scores of a tile
  static constexpr int kRows = 64, kThreads = 128;
  static constexpr int kOwn = 2;                    // rows of a thread
  static constexpr int kScores = kColumns / 4;      // of a row that a thread has
  static constexpr int kMixed = kWidth / 4;         // numbers of a result's row that a thread has
  static constexpr int kVector = kHalf ? 8 : 4;     // elements of 16 bytes
  static constexpr int kStride = kWidth + kVector;  // rows begin at 16 bytes, and eight of them meet all banks
  static constexpr int kWeights = 0;                // weights need no shared memory
  static constexpr int kStep = kHalf ? 16 : 8;      // terms of an instruction

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ __forceinline__ int first_row() { return static_cast<int>(threadIdx.x) / 32 * 16; }

  // The positions of a thread's numbers: x[r][c] is at row(r) and column(c).
  static __device__ __forceinline__ int row(int r) { return first_row() + lane() / 4 + 8 * r; }
  static __device__ __forceinline__ int score_column(int c) { return c / 2 * 8 + lane() % 4 * 2 + c % 2; }
  static __device__ __forceinline__ int mixed_column(int c) { return score_column(c); }

  // Over a row, of which each of its threads has one number.
  template <class Combine>
  static __device__ __forceinline__ float among_row(float mine, const Combine& combine) {
#pragma unroll
    for (int reach = 2; reach > 0; reach /= 2) mine = combine(mine, __shfl_xor_sync(0xffffffffU, mine, reach));
    return mine;
  }

  // Loads a fragment of 16 rows of a row-major matrix, from terms `k` on.
  static __device__ __forceinline__ void load_left(uint32_t (&a)[4], const Element* rows, int k) {
    if constexpr (kHalf) {
      // Matrices: rows 0 to 7, rows 8 to 15, and the same of the next eight terms.
      load_matrices<false>(a, rows + lane() % 16 * kStride + k + lane() / 16 * 8);
    } else {
      // The order of the terms is free: a lane's two are neighbours, as in load_right().
      const float* at = rows + lane() / 4 * kStride + k + lane() % 4 * 2;
      const float2 upper = *reinterpret_cast<const float2*>(at);
      const float2 lower = *reinterpret_cast<const float2*>(at + 8 * kStride);
      a[0] = rounded_to_tf32(upper.x);
      a[1] = rounded_to_tf32(lower.x);
      a[2] = rounded_to_tf32(upper.y);
      a[3] = rounded_to_tf32(lower.y);
    }
  }

  // x = a b' for 64 rows of a and the first `columns` rows of b, or some more; x is 0 for all others.
  static __device__ __forceinline__ void score(const Element* a, const Element* b, int columns,
                                               float (&x)[kOwn][kScores]) {
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
#pragma unroll
      for (int c = 0; c < kScores; ++c) x[r][c] = 0.0F;
    }
    const Element* rows = a + first_row() * kStride;
#pragma unroll
    for (int k = 0; k < kWidth; k += kStep) {
      uint32_t left[4];
      load_left(left, rows, k);
#pragma unroll
      for (int i = 0; i < kColumns / 8; i += 2) {
        if (i * 8 >= columns) break;
        uint32_t right[4];
        load_right(right, b + i * 8 * kStride, k);
        multiply(x, 2 * i, left, right[0], right[1]);
        multiply(x, 2 * i + 2, left, right[2], right[3]);
      }
    }
  }

  // y += x b for the first `columns` rows of b; x is 0 for all others.
  static __device__ __forceinline__ void mix(const float (&x)[kOwn][kScores], const Element* b, int columns,
                                             float* /*weights*/, float (&y)[kOwn][kMixed]) {
#pragma unroll
    for (int k = 0; k < kColumns; k += kStep) {
      if (k >= columns) break;
      uint32_t left[4];
      to_left(left, x, k);
#pragma unroll
      for (int i = 0; i < kWidth / 8; i += 2) {
        uint32_t right[4];
        load_right_transposed(right, b + k * kStride + i * 8);
        multiply(y, 2 * i, left, right[0], right[1]);
        multiply(y, 2 * i + 2, left, right[2], right[3]);
      }
    }
  }

 private:
  template <int n>
  static __device__ __forceinline__ void multiply(float (&x)[kOwn][n], int c, const uint32_t (&a)[4], uint32_t b0,
                                                  uint32_t b1) {
    multiply_fragments<Input>(x[0][c], x[0][c + 1], x[1][c], x[1][c + 1], a, b0, b1);
  }

  // Two fragments of b', whose columns are the 16 rows of b from `rows` on.
  static __device__ __forceinline__ void load_right(uint32_t (&b)[4], const Element* rows, int k) {
    if constexpr (kHalf) {
      // Matrices: rows 0 to 7, the same of the next eight terms, and both of rows 8 to 15.
      load_matrices<false>(b, rows + (lane() / 16 * 8 + lane() % 8) * kStride + k + lane() / 8 % 2 * 8);
    } else {
      const float* at = rows + lane() / 4 * kStride + k + lane() % 4 * 2;
      const float2 first = *reinterpret_cast<const float2*>(at);
      const float2 second = *reinterpret_cast<const float2*>(at + 8 * kStride);
      b[0] = rounded_to_tf32(first.x);
      b[1] = rounded_to_tf32(first.y);
      b[2] = rounded_to_tf32(second.x);
      b[3] = rounded_to_tf32(second.y);
    }
  }

  // Two fragments of b: kStep rows from `rows` on, 16 columns.
  static __device__ __forceinline__ void load_right_transposed(uint32_t (&b)[4], const Element* rows) {
    if constexpr (kHalf) {
      // Matrices: rows 0 to 7, rows 8 to 15, and the same of the next eight columns.
      load_matrices<true>(b, rows + lane() % 16 * kStride + lane() / 16 * 8);
    } else {
      // Rows 2t and 2t + 1: the terms in the order in which to_left() has them.
      const float* at = rows + lane() % 4 * 2 * kStride + lane() / 4;
      b[0] = rounded_to_tf32(at[0]);
      b[1] = rounded_to_tf32(at[kStride]);
      b[2] = rounded_to_tf32(at[8]);
      b[3] = rounded_to_tf32(at[kStride + 8]);
    }
  }

  // Scores of the columns from `k` on as a left fragment.
  static __device__ __forceinline__ void to_left(uint32_t (&a)[4], const float (&x)[kOwn][kScores], int k) {
    const int c = k / 4;
    if constexpr (kHalf) {
      a[0] = packed<Input>(x[0][c], x[0][c + 1]);
      a[1] = packed<Input>(x[1][c], x[1][c + 1]);
      a[2] = packed<Input>(x[0][c + 2], x[0][c + 3]);
      a[3] = packed<Input>(x[1][c + 2], x[1][c + 3]);
    } else {
      a[0] = rounded_to_tf32(x[0][c]);
      a[1] = rounded_to_tf32(x[1][c]);
      a[2] = rounded_to_tf32(x[0][c + 1]);
      a[3] = rounded_to_tf32(x[1][c + 1]);
    }
  }
};

}  // namespace gpunn::cuda_tiled
