// conv:tf32:5 to 8 (small_convolution.hpp): implicit GEMM (Chetlur et al., 2014) in TF32 with mma.sync, for shapes with
// few tiles.
//
// wgmma reads TF32 from shared memory only if the contraction is contiguous. So the earlier variants pack their filters
// by one more kernel, and add the blocks' partial sums by another. For an op of 5 us these kernels are most of the
// time. mma.sync takes its fragments from registers, at a lower rate, which hardly matters for few tiles. Tiles have
// the same layout in shared memory as in global memory. The blocks that share a tile's terms form a cluster and add
// their sums through distributed shared memory, in the order of their ranks.
//
// A multiprocessor holds one or two blocks, so latency decides. The fragments of the next step, and of the next stage's
// first, are loaded before the products of this one. A lane looks up one term's channel and tap for its whole warp. If
// copies are of 4 bytes, twice as many blocks share the work.
//
// H200, all convolutions of ResNet-50 of 28x28, batch 32, best of all variants against the best without these: forward
// 0.55 against 0.95 ms, data gradients 0.66 against 1.02, weight gradients 0.69 against 1.06. Together they take 1.89
// ms against 3.03, and cuDNN's best 3.08. Forward, data and weight gradient in us: 1x1, 1024 to 256 channels of 4x4,
// 8.5, 5.7 and 7.1 against 15.1, 14.8 and 11.4; 512 to 2048 of 2x2 8.9, 10.5 and 10.0 against 20.4, 21.1 and 14.6. 3x3:
// 512 channels of 4x4 at stride 2 21.3 forward against 35.2; 128 of 7x7 12.5 against 15.8, its weight gradient 17.6
// against 24.8. With a stride, the data gradients of 3x3 are faster in the earlier variants: here a pixel is multiplied
// by all taps, including those without an output.
#pragma once

#include <cstdint>

#include "async_copy.cuh"
#include "conv/small/small_convolution_fragments.cuh"
#include "conv/small/small_convolution_parts.cuh"
#include "conv/small/small_convolution_stage.cuh"
#include "conv/small/small_convolution_sums.cuh"
#include "conv/small/small_convolution_tile.cuh"
#include "dependent_launch.cuh"

namespace gpunn::cuda_tiled::small {

// Blocks of a multiprocessor: 128 registers for each of 512 threads.
constexpr int blocks_of(int threads) { return 512 / threads; }

template <class T>  // Traits
__global__ void __launch_bounds__(T::kThreads, blocks_of(T::kThreads))
    small_convolution_kernel(const __grid_constant__ Plan plan, const Arguments arguments) {
#ifdef GPUNN_CONV_TENSOR_CORES
  extern __shared__ __align__(128) float shared[];
  __shared__ int tap_offsets[kMaxTaps];
  __shared__ int2 column_offsets[kTableColumns<T>];
  const TapTables tables{tap_offsets, column_offsets};

  const Place place = place_of<T>(plan);
  if constexpr (T::kTaps) {
    fill_tables<T>(tables, plan, place);
    __syncthreads();
  }
  StageCopier<T> copy_stage{plan, arguments, place, tables};
  if constexpr (!T::kWgrad) copy_stage.find_pixel();
  uint32_t stages;  // once: the compiler would look it up at each use
  asm volatile("mov.b32 %0, %1;" : "=r"(stages) : "r"(shared_address(shared)));

  wait_for_kernel_before();
  const WarpTile warp_tile = warp_tile_of<T>(place);
  Sums sum = {};
  Fragments fragments[2];
#pragma unroll
  for (int i = 0; i < kStages; ++i) {
    if (i < place.chunks) copy_stage(place.first_chunk + i, stages + i * T::kStage * 4);
    commit_copies();
  }

  // The fragments of a step are loaded before the products of the one before it, those of a stage's first step too.
  constexpr int kSteps = T::kTerms / 8 / T::kGroups;
  static_assert(kSteps % 2 == 0);
  wait_copies<kStages - 1>();
  __syncthreads();
  load_fragments<T>(fragments[0], warp_tile, stages, 0);
  uint32_t stage = stages;
  for (int chunk = 0; chunk < place.chunks; ++chunk) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step + 1 < kSteps) {
        load_fragments<T>(fragments[(step + 1) % 2], warp_tile, stage, step + 1);
      } else {
        wait_copies<kStages - 2>();
        __syncthreads();
        const uint32_t free = stage;
        stage = stage == stages + (kStages - 1) * T::kStage * 4 ? stages : stage + T::kStage * 4;
        if (chunk + 1 < place.chunks) load_fragments<T>(fragments[0], warp_tile, stage, 0);
        if (chunk + kStages < place.chunks) copy_stage(place.first_chunk + chunk + kStages, free);
        commit_copies();
      }
      multiply_fragments(sum, fragments[step % 2]);
    }
  }

  add_groups<T>(shared, sum, warp_tile);  // where the stages were, which all have read
  if (plan.splits > 1) {
    meet_cluster();
  } else {
    __syncthreads();
  }
  store_tile<T>(plan, arguments, place, shared);
  if (plan.splits > 1) meet_cluster_relaxed();  // no block ends while others read what it has
#endif
}

}  // namespace gpunn::cuda_tiled::small
