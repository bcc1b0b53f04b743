// The warp-level product of small_convolution_kernel.cuh: 32 rows by 32 columns, for every kGroups-th eight terms of a
// stage, in fragments of mma.sync.
#pragma once

#include <cstdint>

#include "conv/small/small_convolution_parts.cuh"
#include "conv/small/small_convolution_tile.cuh"

namespace gpunn::cuda_tiled::small {

#ifdef GPUNN_CONV_TENSOR_CORES

// A warp's tile within its block's tile, and its group among those that share a stage's terms.
struct WarpTile {
  int lane, group, row, column;
};

template <class T>
__device__ __forceinline__ WarpTile warp_tile_of(const Place& place) {
  constexpr int kWarpColumns = T::kColumns / 32;
  constexpr int kGroupWarps = T::kRows / 32 * kWarpColumns;
  return {place.lane, place.warp / kGroupWarps, place.warp % kGroupWarps / kWarpColumns * 32,
          place.warp % kWarpColumns * 32};
}

// The fragments of eight terms.
struct Fragments {
  uint32_t a[2][4];
  uint32_t b[4][2];
};

using Sums = float[2][4][4];

// ldmatrix loads contiguous terms. If rows or columns are contiguous instead, words are loaded one by one.
template <class T>
__device__ __forceinline__ void load_fragments(Fragments& to, const WarpTile& tile, uint32_t stage, int step) {
  const uint32_t second = stage + T::kFirst * 4;
  const int lane = tile.lane;
  const int term = (step * T::kGroups + tile.group) * 8;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if constexpr (T::kDgrad) {
      const int place = (term + lane % 4) * column_pitch(T::kRows) + tile.row + i * 16 + lane / 4;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int word = place + j / 2 * 4 * column_pitch(T::kRows) + j % 2 * 8;
        to.a[i][j] = tensor::load_word(stage + static_cast<uint32_t>(word) * 4);
      }
    } else {
      const int word = (tile.row + i * 16 + lane % 16) * T::kTermPitch + term + lane / 16 * 4;
      load_matrices(to.a[i], stage + static_cast<uint32_t>(word) * 4);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (T::kWgrad) {
      if (i % 2 != 0) continue;
      uint32_t both[4];
      const int word = (tile.column + i * 8 + lane / 16 * 8 + lane % 8) * T::kTermPitch + term + lane / 8 % 2 * 4;
      load_matrices(both, second + static_cast<uint32_t>(word) * 4);
      to.b[i][0] = both[0];
      to.b[i][1] = both[1];
      to.b[i + 1][0] = both[2];
      to.b[i + 1][1] = both[3];
    } else {
      const int word = (term + lane % 4) * T::kPitch + tile.column + i * 8 + lane / 4;
      to.b[i][0] = tensor::load_word(second + static_cast<uint32_t>(word) * 4);
      to.b[i][1] = tensor::load_word(second + static_cast<uint32_t>(word + 4 * T::kPitch) * 4);
    }
  }
}

// Both operands are rounded to nearest: the truncation of the tensor cores would make every sum too small.
__device__ __forceinline__ void multiply_fragments(Sums& sum, const Fragments& of) {
  uint32_t b[4][2];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int k = 0; k < 2; ++k) b[j][k] = tensor::round_tf32(__uint_as_float(of.b[j][k]));
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    uint32_t a[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) a[j] = tensor::round_tf32(__uint_as_float(of.a[i][j]));
#pragma unroll
    for (int j = 0; j < 4; ++j) multiply(sum[i][j], a, b[j][0], b[j][1]);
  }
}

#endif

}  // namespace gpunn::cuda_tiled::small
