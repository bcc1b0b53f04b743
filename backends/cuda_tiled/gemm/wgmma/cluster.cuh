// Hopper's clusters and bulk tensor copies (TMA). Each function is one or two PTX instructions, described in the PTX
// ISA, "cp.async.bulk.tensor".
#pragma once

#include <cstdint>

#include <cuda.h>

#include "shared_barrier.cuh"

namespace gpunn::cuda_tiled {

// One arrival at the same barrier of block `rank` of the cluster. Neither this nor the wait names the scope of the
// cluster: that would flush and invalidate caches each time (H200: 4096^3 in BF16 at 449 TFLOP/s instead of 698), for
// ordinary writes that these barriers don't guard.
__device__ __forceinline__ void barrier_arrive(uint64_t* barrier, uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank = 0;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// A barrier of all threads of the cluster's blocks. All writes before it are visible to all after it.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// The four numbers at the same place in the shared memory of block `rank`.
__device__ __forceinline__ float4 load_shared_of(const float* here, uint32_t rank) {
  float4 value;
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %4, %5;\n"
      "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n}"
      : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
      : "r"(shared_address(here)), "r"(rank)
      : "memory");
  return value;
}

__device__ __forceinline__ void prefetch_tensor_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Copies the box at (inner, outer) of the tensor to shared memory; `barrier` gets its bytes. Elements beyond the
// tensor's sizes are zeros and count.
__device__ __forceinline__ void copy_box(void* to, const CUtensorMap* map, uint64_t* barrier, int inner, int outer) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::
          "r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(inner), "r"(outer)
      : "memory");
}

// The same, to the same place in each block of the cluster whose bit is set; each block's barrier gets the bytes.
__device__ __forceinline__ void copy_box_to(uint16_t blocks, void* to, const CUtensorMap* map, uint64_t* barrier,
                                            int inner, int outer) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
      "{%3, %4}], "
      "[%2], %5;" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(inner), "r"(outer), "h"(blocks)
      : "memory");
}

// Sets the number of registers of each thread, for a whole warpgroup.
template <uint32_t kCount>
__device__ __forceinline__ void give_up_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <uint32_t kCount>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

}  // namespace gpunn::cuda_tiled
