// The TMA copies that bring a stage of a bf16 or f16 product to shared memory. Each is one PTX instruction:
// "cp.async.bulk.tensor".
#pragma once

#include <cstdint>

#include "gemm/wgmma/cluster.cuh"

namespace gpunn::cuda_tiled {

// The box at (inner, tap, outer) of a tensor of three dimensions.
__device__ __forceinline__ void copy_box_of_tap(void* to, const CUtensorMap* map, uint64_t* barrier, int inner, int tap,
                                                int outer) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(inner), "r"(tap), "r"(outer)
      : "memory");
}

// The position of the first of a tile's windows.
struct Pixel {
  int row;
  int column;
  int image;
};

// A pixel of each of the windows from `first` on: the one `row_offset` and `column_offset` behind its beginning.
// Windows beyond the last image are zeros and count.
__device__ __forceinline__ void copy_windows(void* to, const CUtensorMap* map, uint64_t* barrier, int channel,
                                             const Pixel& first, int row_offset, int column_offset) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
      "%6}], "
      "[%2], {%7, %8};" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(channel), "r"(first.column), "r"(first.row), "r"(first.image),
      "h"(static_cast<uint16_t>(column_offset)), "h"(static_cast<uint16_t>(row_offset))
      : "memory");
}

}  // namespace gpunn::cuda_tiled
