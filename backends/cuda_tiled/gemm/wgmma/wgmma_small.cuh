// gemm:wgmma_small: matrix product without split K, in tiles so small that each multiprocessor has about one: 128 x 64,
// 64 x 128, 64 x 64 or 64 x 32. The split variants need barriers of their clusters before the first copy and after the
// last sum. At a K of 1024 these cost more than the saved traffic. In TF32 an operand that is not K-major is transposed
// by a pass before, one for both.
//
// H200: 1024^3, NT, in 7.8 us in TF32, 276 TFLOP/s, 1.3 times gemm:wgmma_split_low, 1.48 times cuBLAS; BF16 5.1 us, 419
// TFLOP/s, 1.3 times it, 1.12 times cuBLAS. 512^3 in BF16 2.5 us instead of 4.5, 4096 x 64 x 1024 3.8 us instead of
// 7.1. With the transposing pass: 1024^3, NN, in 11.0 us, 1.15 times cuBLAS, gemm:wgmma_split 12.1 us; TN 12.5 us, 1.38
// times, 14.1 us; TT 11.0 us, 1.14 times, 11.5 us; 512^3, NN, 5.2 us instead of 6.5, 128 x 512 x 512 4.6 us instead of
// 5.2.
#pragma once

#include <algorithm>

#include "gemm/wgmma/wgmma.cuh"

namespace gpunn::cuda_tiled {

// As many stages as fit in shared memory, at most 16.
constexpr int small_stages(int consumers, int columns) {
  constexpr int kRoom = 208 * 1024;
  return std::min(kRoom / ((64 * consumers + columns) * kLineBytes), 16);
}

template <WgmmaOperands kOperands, int kConsumers, int kColumns>
using SmallTiling = Tiling<WgmmaTile{
    .operands = kOperands, .consumers = kConsumers, .columns = kColumns, .stages = small_stages(kConsumers, kColumns)}>;

// A tile that is inside of y, without bias or ReLU: with so few warps the instructions for them would be waited for.
template <class T>
__device__ __forceinline__ void store_sums(const float (&d)[T::kColumns / 2], const WgmmaOutput& out, int row,
                                           int column) {
  const int shift = (threadIdx.x & 1U) != 0 ? 8 - 2 : 0;
  float* const upper = out.y + int64_t{row} * out.columns + column + shift;
  float* const lower = upper + int64_t{kRowStep<T>} * out.columns;
#pragma unroll
  for (int j = 0; j < T::kColumns / 8; j += 2) {
    const float *const s = d + j * 4, *const t = s + 4;
    *reinterpret_cast<float4*>(upper + j * 8) = exchange<1>(make_float2(s[0], s[1]), make_float2(t[0], t[1]));
    *reinterpret_cast<float4*>(lower + j * 8) = exchange<1>(make_float2(s[2], s[3]), make_float2(t[2], t[3]));
  }
}

// With `share` 2 the blocks of a cluster are neighbours in a row of tiles, and each brings half of a's tile to both.
template <class T>
__global__ __launch_bounds__(T::kThreads, 1) void wgmma_small(const __grid_constant__ CUtensorMap a,
                                                              const __grid_constant__ CUtensorMap b, WgmmaOutput out,
                                                              int share, int blocks) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ uint8_t shared[];
  __shared__ RingBarriers<T> barriers;
  const int rank = static_cast<int>(blockIdx.y) % share;
  Ring<T> ring = make_ring<T>(shared, barriers, a, b,
                              {.a = {.count = share, .index = rank}, .b = {.count = 1, .first_rank = rank}});
  begin_ring(share);

  const int row = static_cast<int>(blockIdx.x) * T::kRows, column = static_cast<int>(blockIdx.y) * T::kColumns;
  const int warpgroup = warpgroup_index();
  if (warpgroup == 0) {
    if (threadIdx.x == 0) produce(ring, a, b, row, column, 0, blocks);
  } else {
    const int consumer = warpgroup - 1;
    const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    const int thread_row = consumer * 64 + row_of_thread<T>(thread), thread_column = thread % 4 * 2;
    float d[T::kColumns / 2];
    // What is not filled again is not released, so that no thread arrives at a barrier of a block that has ended.
    consume(ring, d, consumer, thread, blocks, blocks - T::kStages);
    const bool inside = row + T::kRows <= out.rows && column + T::kColumns <= out.columns && out.columns % 4 == 0;
    if (inside && out.epilogue.bias == nullptr && !out.epilogue.relu)
      store_sums<T>(d, out, row + thread_row, column + thread_column);
    else
      store<T, false>(d, out, row, column, thread_row, thread_column);
  }
#endif
}

}  // namespace gpunn::cuda_tiled
