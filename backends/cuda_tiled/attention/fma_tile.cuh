// The two matrix products of an attention tile on the ordinary cores, in strict fp32. 16 x 16 threads compute 64 rows.
// Each thread holds four neighbouring rows, and every 16th column of the scores. The products by the weights need all
// columns of these rows, so the weights pass through shared memory within the half warp that holds the rows.
#pragma once

#include <cstdint>

namespace gpunn::cuda_tiled {

template <int width_, int columns_>
struct FmaTile {
  using Element = float;
  static constexpr int kWidth = width_;      // of a row of q, k, v: 32, 64 or 128
  static constexpr int kColumns = columns_;  // of the scores of a tile
  static constexpr int kRows = 64, kThreads = 256;
  static constexpr int kOwn = 4;                      // rows of a thread
  static constexpr int kScores = kColumns / 16;       // of a row that a thread has
  static constexpr int kMixed = kWidth / 16;          // numbers of a result's row that a thread has
  static constexpr int kStride = kWidth + 4;          // rows begin at 16 bytes, and eight of them meet all banks
  static constexpr int kVector = 4;                   // elements of 16 bytes
  static constexpr int kWeightStride = kColumns + 4;  // likewise
  static constexpr int kWeights = kRows * kWeightStride;
  static constexpr int kGroup = kMixed < 4 ? kMixed : 4;  // neighbouring columns of a result

  // The positions of a thread's numbers: x[r][c] is at row(r) and score_column(c), or mixed_column(c).
  static __device__ __forceinline__ int row(int r) { return static_cast<int>(threadIdx.x) / 16 * 4 + r; }
  // The first row of a warp.
  static __device__ __forceinline__ int first_row() { return static_cast<int>(threadIdx.x) / 32 * 8; }
  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 16; }
  static __device__ __forceinline__ int score_column(int c) { return lane() + 16 * c; }
  static __device__ __forceinline__ int mixed_column(int c) {
    return c / kGroup * 16 * kGroup + lane() * kGroup + c % kGroup;
  }

  // Over a row, of which each of its threads has one number.
  template <class Combine>
  static __device__ __forceinline__ float among_row(float mine, const Combine& combine) {
#pragma unroll
    for (int reach = 8; reach > 0; reach /= 2) mine = combine(mine, __shfl_xor_sync(0xffffffffU, mine, reach));
    return mine;
  }

  // x = a b' for 64 rows of a and the kColumns rows of b, of which those from `columns` on are 0.
  static __device__ __forceinline__ void score(const float* a, const float* b, int /*columns*/,
                                               float (&x)[kOwn][kScores]) {
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
#pragma unroll
      for (int c = 0; c < kScores; ++c) x[r][c] = 0.0F;
    }
#pragma unroll 4
    for (int d = 0; d < kWidth; d += 4) {
      float4 left[kOwn], right[kScores];
#pragma unroll
      for (int r = 0; r < kOwn; ++r) left[r] = *reinterpret_cast<const float4*>(a + row(r) * kStride + d);
#pragma unroll
      for (int c = 0; c < kScores; ++c) right[c] = *reinterpret_cast<const float4*>(b + score_column(c) * kStride + d);
#pragma unroll
      for (int r = 0; r < kOwn; ++r) {
#pragma unroll
        for (int c = 0; c < kScores; ++c) {
          x[r][c] = fmaf(left[r].x, right[c].x, x[r][c]);
          x[r][c] = fmaf(left[r].y, right[c].y, x[r][c]);
          x[r][c] = fmaf(left[r].z, right[c].z, x[r][c]);
          x[r][c] = fmaf(left[r].w, right[c].w, x[r][c]);
        }
      }
    }
  }

  // y += x b for the first `columns` rows of b; x is 0 for all others. `weights` is shared memory of kWeights floats.
  static __device__ __forceinline__ void mix(const float (&x)[kOwn][kScores], const float* b, int columns,
                                             float* weights, float (&y)[kOwn][kMixed]) {
    __syncwarp();  // the weights before have been read
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
#pragma unroll
      for (int c = 0; c < kScores; ++c) weights[row(r) * kWeightStride + score_column(c)] = x[r][c];
    }
    __syncwarp();
#pragma unroll 2
    for (int j = 0; j < min(columns, kColumns); j += 4) {
      float4 by[kOwn];
#pragma unroll
      for (int r = 0; r < kOwn; ++r) by[r] = *reinterpret_cast<const float4*>(weights + row(r) * kWeightStride + j);
      const auto add = [&](int step, float(&w)[kOwn]) {
        float value[kMixed];
#pragma unroll
        for (int c = 0; c < kMixed; ++c) value[c] = b[(j + step) * kStride + mixed_column(c)];
#pragma unroll
        for (int r = 0; r < kOwn; ++r) {
#pragma unroll
          for (int c = 0; c < kMixed; ++c) y[r][c] = fmaf(w[r], value[c], y[r][c]);
        }
      };
      float x0[kOwn], x1[kOwn], x2[kOwn], x3[kOwn];
#pragma unroll
      for (int r = 0; r < kOwn; ++r) {
        x0[r] = by[r].x;
        x1[r] = by[r].y;
        x2[r] = by[r].z;
        x3[r] = by[r].w;
      }
      add(0, x0);
      add(1, x1);
      add(2, x2);
      add(3, x3);
    }
  }
};

}  // namespace gpunn::cuda_tiled
