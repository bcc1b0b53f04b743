// The end of a convolution in eight bits: exact sums become bytes of y, with scale, bias, residual and ReLU, or
// numbers.
//
// T describes a tile: kTileM pixels x kTileN filters, kThreads threads that store it, and the kFragmentsM x kFragmentsN
// blocks of 16 x 8 sums of a warp. Results lie in shared memory, kPitch bytes a pixel.
#pragma once

#include <cstdint>

#include "quantized/quantized_convolution.hpp"

namespace gpunn::cuda_tiled {

inline constexpr int kChunkBytes = 16;

// Of a block of 16 x 8 a lane holds row lane / 4 in [0] and [1], row lane / 4 + 8 in [2] and [3], at the columns lane %
// 4 * 2 and the next.
template <class T>
using QuantizedSums = int32_t[T::kFragmentsM][T::kFragmentsN][4];

// Calls move(element of the tile's results in shared memory, of a tensor like y, bytes) for all that the block makes.
template <class T, class Move>
__device__ __forceinline__ void for_results(const QuantizedArguments& a, int first_pixel, int first_filter,
                                            const Move& move) {
  constexpr int kRowChunks = T::kTileN / kChunkBytes;
  for (int i = static_cast<int>(threadIdx.x); i < T::kTileM * kRowChunks; i += T::kThreads) {
    const int row = i / kRowChunks, column = i % kRowChunks * kChunkBytes;
    const int pixel = first_pixel + row, filter = first_filter + column;
    if (pixel >= a.pixels || filter >= a.outputs) continue;
    const int64_t at = int64_t{pixel} * a.all_outputs + int64_t{blockIdx.y} * a.outputs + filter;
    move(row * T::kPitch + column, at, min(kChunkBytes, a.outputs - filter));
  }
}

// The scaling of a filter's sums to results.
template <class T>
struct QuantizedColumns {
  float factor[T::kTileN], offset[T::kTileN];
  int32_t first[T::kTileN];

  // Whether a number of this thread is infinite or none.
  __device__ __forceinline__ bool fill(const QuantizedArguments& a, int first_filter) {
    bool strange = false;
    for (int column = static_cast<int>(threadIdx.x); column < T::kTileN; column += T::kThreads) {
      const bool there = first_filter + column < a.outputs;
      const int filter = static_cast<int>(blockIdx.y) * a.outputs + first_filter + column;
      factor[column] = there ? a.x_scale * a.scale[filter] / a.y_scale : 0.0F;
      const float bias = there && a.bias != nullptr ? a.bias[filter] / a.y_scale : 0.0F;
      offset[column] = bias - a.residual_zero * a.residual_factor;
      first[column] = there && a.first != nullptr ? a.first[filter] : 0;
      strange = strange || !isfinite(factor[column]) || !isfinite(offset[column]);
    }
    return strange;
  }
};

// Of a value in units of y's scale. A NaN, which comes of strange numbers alone, is stored as 0.
template <bool kStrange>
__device__ __forceinline__ int32_t stored_number(float value, const QuantizedArguments& a) {
  constexpr float kFar = 4096.0F;  // beyond what is stored; the lowest integer is far from overflowing downwards
  const int32_t number = max(__float2int_rn(fminf(value, kFar)) + a.y_zero_point, a.low);
  return kStrange && isnan(value) ? 0 : number;
}

// Cut to bytes, `low` in the lower one.
__device__ __forceinline__ uint32_t byte_pair(int32_t low, int32_t high) {
  uint32_t pair = 0;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(pair) : "r"(high), "r"(low));
  return pair;
}

// Scales the sums, adds bias and residual, and writes what is stored over the residual's bytes in shared memory.
template <class T, bool kResidual, bool kStrange>
__device__ __forceinline__ void store_sums(const QuantizedArguments& a, const QuantizedSums<T>& sums,
                                           const QuantizedColumns<T>& columns, uint8_t* results, int m, int n) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int j = 0; j < T::kFragmentsN; ++j) {
    const int column = n + j * 8 + lane % 4 * 2;
    const float factor[2] = {columns.factor[column], columns.factor[column + 1]};
    const float offset[2] = {columns.offset[column], columns.offset[column + 1]};
    const int32_t first[2] = {columns.first[column], columns.first[column + 1]};
#pragma unroll
    for (int i = 0; i < T::kFragmentsM; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        auto* const pair =
            reinterpret_cast<uint16_t*>(results + (m + i * 16 + half * 8 + lane / 4) * T::kPitch + column);
        float added[2] = {offset[0], offset[1]};
        if constexpr (kResidual) {
          const uint32_t both = *pair;
          added[0] += static_cast<float>(both & 0xFFU) * a.residual_factor;
          added[1] += static_cast<float>(both >> 8U) * a.residual_factor;
        }
        int32_t stored[2];
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const auto sum = static_cast<float>(sums[i][j][half * 2 + c] + first[c]);
          stored[c] = stored_number<kStrange>(sum * factor[c] + added[c], a);
        }
        *pair = static_cast<uint16_t>(byte_pair(stored[0], stored[1]));
      }
    }
  }
}

template <class T>
__device__ __forceinline__ void store_sums(const QuantizedArguments& a, bool strange, const QuantizedSums<T>& sums,
                                           const QuantizedColumns<T>& columns, uint8_t* results, int m, int n) {
  if (strange) {
    if (a.residual != nullptr) return store_sums<T, true, true>(a, sums, columns, results, m, n);
    return store_sums<T, false, true>(a, sums, columns, results, m, n);
  }
  if (a.residual != nullptr) return store_sums<T, true, false>(a, sums, columns, results, m, n);
  store_sums<T, false, false>(a, sums, columns, results, m, n);
}

// Copies the results from shared memory to y.
template <class T>
__device__ __forceinline__ void write_results(const QuantizedArguments& a, const uint8_t* results, int first_pixel,
                                              int first_filter) {
  for_results<T>(a, first_pixel, first_filter, [&](int in_tile, int64_t of_y, int bytes) {
    if (a.vectors) {
      *reinterpret_cast<uint4*>(a.y + of_y) = *reinterpret_cast<const uint4*>(results + in_tile);
    } else {
      for (int i = 0; i < bytes; ++i) a.y[of_y + i] = results[in_tile + i];
    }
  });
}

// Scales the sums, adds the bias and writes numbers. The tile begins at first_pixel and first_filter.
template <class T>
__device__ __forceinline__ void write_numbers(const QuantizedArguments& a, const QuantizedSums<T>& sums,
                                              const QuantizedColumns<T>& columns, int first_pixel, int first_filter,
                                              int m, int n) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int j = 0; j < T::kFragmentsN; ++j) {
    const int column = n + j * 8 + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < T::kFragmentsM; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int pixel = first_pixel + m + i * 16 + k / 2 * 8 + lane / 4, of_tile = column + k % 2;
        const int filter = first_filter + of_tile;
        if (pixel >= a.pixels || filter >= a.outputs) continue;
        const auto sum = static_cast<float>(sums[i][j][k] + columns.first[of_tile]);
        a.numbers[int64_t{pixel} * a.all_outputs + int64_t{blockIdx.y} * a.outputs + filter] =
            sum * columns.factor[of_tile] + columns.offset[of_tile];
      }
    }
  }
}

}  // namespace gpunn::cuda_tiled
