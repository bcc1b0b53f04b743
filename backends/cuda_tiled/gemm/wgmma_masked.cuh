// The ends of the Hopper kernels with the epilogue of masked.hpp, for products computed transposed: rows of y' are
// columns of y. A warp has its 16 of them to itself, so sums need no barrier of a block, and each warp has its turn.
#pragma once

#include <cstdint>

#include "last_block.cuh"
#include "wgmma.cuh"

namespace gpunn::cuda_tiled {

// Four numbers of the mask, zeros outside. Volatile, as stores are, so that not all of them are asked for first.
__device__ __forceinline__ float4 load_mask(const float* y, bool inside) {
  float4 quad = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  if (inside) {
    asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(quad.x), "=f"(quad.y), "=f"(quad.z), "=f"(quad.w)
                 : "l"(y));
  }
  return quad;
}

// The sum over lanes that differ in these bits.
template <int kLanes>
__device__ __forceinline__ float sum_over_lanes(float x) {
#pragma unroll
  for (int bit = 1; bit < 32; bit *= 2) {
    if ((kLanes & bit) != 0) x += __shfl_xor_sync(0xFFFFFFFFU, x, bit);
  }
  return x;
}

// In place of store. `parts` tiles lie side by side in y', of which this is `part`. Rows of y are whole quads, which
// lanes get by exchange: of the quads of step j this thread's is in row j * 8 of its own.
template <class T>
__device__ __forceinline__ void store_masked(float (&d)[T::kColumns / 2], const WgmmaOutput& out, int row, int part,
                                             int parts, int thread_row, int thread_column) {
  constexpr int kSteps = T::kColumns / 8;
  constexpr int kAhead = 8;  // quads of the mask on their way
  static_assert(kSteps % kAhead == 0);
  const int upper = (threadIdx.x & 4U) != 0 ? 1 : 0;
  unsigned* const counter = out.mask.counters + (row + thread_row / 32 * 32) / 16 + threadIdx.x / 32 % 2;
  const int column = row + thread_row - upper * 2;  // of y
  const int first = part * T::kColumns + thread_column + upper;
  const int left = column < out.rows ? out.columns - first : 0;  // rows of y
  int64_t pitch = out.rows;
  asm volatile("" : "+l"(pitch));  // as in store_transposed
  const int64_t begin = first * pitch + column;

  const float* mask = out.mask.y + begin;
  float4 total = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
#pragma unroll
  for (int group = 0; group < kSteps; group += kAhead) {
    float4 y[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      y[j] = load_mask(mask, (group + j) * 8 < left);
      mask += 8 * pitch;
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      float* const s = d + (group + j) * 4;
      const float4 kept = masked(exchange<4>(make_float2(s[0], s[2]), make_float2(s[1], s[3])), y[j]);
      total = make_float4(total.x + kept.x, total.y + kept.y, total.z + kept.z, total.w + kept.w);
      s[0] = kept.x;
      s[1] = kept.y;
      s[2] = kept.z;
      s[3] = kept.w;
    }
  }
  total = make_float4(sum_over_lanes<7>(total.x), sum_over_lanes<7>(total.y), sum_over_lanes<7>(total.z),
                      sum_over_lanes<7>(total.w));
  const bool adds = threadIdx.x % 8 == 0 && column < out.rows;
  if (adds) *reinterpret_cast<float4*>(out.mask.parts + int64_t{part} * out.rows + column) = total;
  __threadfence();
  __syncwarp();
  unsigned turn = 0;
  if (threadIdx.x % 32 == 0) turn = atomicInc(counter, static_cast<unsigned>(parts) - 1);
  float* y = out.y + begin;
#pragma unroll
  for (int j = 0; j < kSteps; ++j) {
    const float* const s = d + j * 4;
    if (j * 8 < left) store_quad(y, make_float4(s[0], s[1], s[2], s[3]));
    y += 8 * pitch;
  }
  if (__shfl_sync(0xFFFFFFFFU, turn, 0) + 1 != static_cast<unsigned>(parts)) return;
  __threadfence();
  for (int i = 0; adds && i < 4; ++i) {
    out.mask.sums[column + i] = sum_of_parts(out.mask.parts, parts, out.rows, column + i);
  }
}

}  // namespace gpunn::cuda_tiled
