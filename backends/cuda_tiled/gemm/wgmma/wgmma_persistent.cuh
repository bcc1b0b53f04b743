// gemm:wgmma_persistent: matrix product by persistent blocks, one a multiprocessor, each of which walks over tiles of
// 128 x 256. While the consumers store a tile the producer already fills the ring for the next one. Consumers get the
// registers that the producer gives up (setmaxnreg), 128 of them for sums. H200: 4096^3, NT, in 0.341 ms in TF32, 403
// TFLOP/s, 4.2 times gemm:mma_sync; BF16 0.185 ms, 742 TFLOP/s, 5.4 times.
#pragma once

#include "gemm/wgmma/wgmma.cuh"

namespace gpunn::cuda_tiled {

// Tiles in bands of `band` rows, down a band first: the multiprocessors' tiles at a time form a block of y
// that is about as high as wide, which keeps the a and b they need few enough for L2.
struct TileOrder {
  int row_tiles;  // of as many times 128 rows as blocks share
  int column_tiles;
  int band;

  __device__ __forceinline__ int2 operator()(int tile) const {
    const int first_row = tile / (band * column_tiles) * band;
    const int left = row_tiles - first_row;
    const int height = left < band ? left : band;
    const int within = tile - first_row * column_tiles;
    return {first_row + within % height, within / height};
  }
};

template <class T, bool kTransposed>
__global__ __launch_bounds__(T::kThreads, 1) void wgmma_persistent(const __grid_constant__ CUtensorMap a,
                                                                   const __grid_constant__ CUtensorMap b,
                                                                   WgmmaOutput out, TileOrder order, int blocks) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ uint8_t shared[];
  __shared__ RingBarriers<T> barriers;
  Ring<T> ring = make_ring<T>(shared, barriers, a, b, {});
  begin_ring(1);

  static_assert(T::kConsumers == 2);  // for the registers that it divides
  const int warpgroup = warpgroup_index();
  const int step = static_cast<int>(gridDim.x);
  const int tiles = order.row_tiles * order.column_tiles;
  if (warpgroup == 0) {
    give_up_registers<40>();
    if (threadIdx.x == 0) {
      for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += step) {
        const int2 at = order(tile);
        produce(ring, a, b, at.x * T::kRows, at.y * T::kColumns, 0, blocks);
      }
    }
  } else {
    take_registers<232>();
    const int consumer = warpgroup - 1;
    const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    const int thread_row = consumer * 64 + row_of_thread<T>(thread);
    float d[T::kColumns / 2];
    for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += step) {
      const int2 at = order(tile);
      consume(ring, d, consumer, thread, blocks, blocks);
      store<T, kTransposed>(d, out, at.x * T::kRows, at.y * T::kColumns, thread_row, thread % 4 * 2);
    }
  }
#endif
}

}  // namespace gpunn::cuda_tiled
