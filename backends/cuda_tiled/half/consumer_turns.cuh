// Two warpgroups of a block that multiply in turns: while one stores its tile the other multiplies.
#pragma once

#include <cstdint>

#include "gemm/wgmma/wgmma.cuh"
#include "shared_barrier.cuh"

namespace gpunn::cuda_tiled {

// A consumer must not wait for a stage before the ring has come to the round before: barriers tell odd rounds from even
// ones, no more. So it begins when the other has been through the stages in between.
struct ConsumerTurns {
  static constexpr int kArrivals = kWarpgroup / 32;  // at each barrier

  __device__ __forceinline__ ConsumerTurns(uint64_t* barriers, int consumer)
      : begins(barriers), phase(consumer == 0 ? 1U : 0U) {}  // the first begins at once

  __device__ __forceinline__ void wait(int consumer) {
    barrier_wait(&begins[consumer], phase);
    phase ^= 1U;
  }
  __device__ __forceinline__ void hand_over(int consumer, int thread) const {
    if (thread % 32 == 0) barrier_arrive(&begins[1 - consumer]);
  }

  uint64_t* begins;  // of each consumer
  uint32_t phase;
};

}  // namespace gpunn::cuda_tiled
