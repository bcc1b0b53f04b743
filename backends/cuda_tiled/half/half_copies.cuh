// The TMA copies that bring a stage of a bf16 or f16 product to shared memory. Each is one PTX instruction:
// "cp.async.bulk.tensor".
#pragma once

#include <cstdint>

#include "gemm/wgmma/cluster.cuh"

namespace gpunn::cuda_tiled {

// Each copies to the same place in every block of the cluster whose bit is set in kTo; each block's barrier gets the
// bytes.
inline constexpr uint16_t kThisBlock = 1;  // of a cluster of one

// The box at (inner, tap, outer) of a tensor of three dimensions.
template <uint16_t kTo = kThisBlock>
__device__ __forceinline__ void copy_box_of_tap(void* to, const CUtensorMap* map, uint64_t* barrier, int inner, int tap,
                                                int outer) {
  if constexpr (kTo != kThisBlock) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(to)),
        "l"(map), "r"(shared_address(barrier)), "r"(inner), "r"(tap), "r"(outer), "h"(kTo)
        : "memory");
    return;
  }
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
template <uint16_t kTo = kThisBlock>
__device__ __forceinline__ void copy_windows(void* to, const CUtensorMap* map, uint64_t* barrier, int channel,
                                             const Pixel& first, int row_offset, int column_offset) {
  if constexpr (kTo != kThisBlock) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%3, %4, %5, %6}], [%2], {%7, %8}, %9;" ::"r"(shared_address(to)),
        "l"(map), "r"(shared_address(barrier)), "r"(channel), "r"(first.column), "r"(first.row), "r"(first.image),
        "h"(static_cast<uint16_t>(column_offset)), "h"(static_cast<uint16_t>(row_offset)), "h"(kTo)
        : "memory");
    return;
  }
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
      "%6}], "
      "[%2], {%7, %8};" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(channel), "r"(first.column), "r"(first.row), "r"(first.image),
      "h"(static_cast<uint16_t>(column_offset)), "h"(static_cast<uint16_t>(row_offset))
      : "memory");
}

// The box of an image, from a row and a column on that may lie outside of it. What lies outside is zeros and counts.
__device__ __forceinline__ void copy_box_of_image(void* to, const CUtensorMap* map, uint64_t* barrier, int channel,
                                                  const Pixel& first) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(channel), "r"(first.column), "r"(first.row), "r"(first.image)
      : "memory");
}

// Stores a box from shared memory, where writes have to be visible to TMA (fence_shared). What lies beyond the tensor's
// sizes is left out. The thread that stores also waits.
__device__ __forceinline__ void store_box_of_tap(const CUtensorMap* map, uint32_t from, int inner, int tap, int outer) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
               "r"(from), "r"(inner), "r"(tap), "r"(outer)
               : "memory");
}

// What this thread has stored since the last call is a group.
__device__ __forceinline__ void end_store_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Until all but the last `kLeft` groups of this thread have been read from shared memory.
template <int kLeft>
__device__ __forceinline__ void wait_for_store_reads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLeft) : "memory");
}

}  // namespace gpunn::cuda_tiled
