// Reductions over thread blocks, or warps, each of which stores a partial result in memory. The last to finish adds
// them in their order: equal inputs give equal bits, without a second launch. A counter (counters.hpp) counts the
// arrivals.
#pragma once

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

// The arrival of this block, one of `blocks`; all of its threads must take part. The counter is 0 again afterwards.
// Between the two calls a block can do work that the others need not wait for.
class BlockTurn {
 public:
  // The last block sees all that this block wrote before.
  __device__ __forceinline__ BlockTurn(unsigned* counter, unsigned blocks) : last_turn_(blocks - 1) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) turn_ = atomicInc(counter, last_turn_);
  }
  __device__ __forceinline__ bool is_last() const {
    __shared__ bool last;
    if (threadIdx.x == 0) last = turn_ == last_turn_;
    __syncthreads();
    if (last) __threadfence();
    return last;
  }

 private:
  unsigned last_turn_;
  unsigned turn_ = 0;
};

// Whether this warp is the last of `warps` to arrive. Its first lane has written a partial result, and all lanes must
// call it. The last warp sees what the first lanes of the others wrote before. The counter is 0 again afterwards.
__device__ __forceinline__ bool is_last_warp(unsigned* counter, unsigned warps) {
  bool last = false;
  if (threadIdx.x % 32 == 0) {
    __threadfence();
    last = atomicInc(counter, warps - 1) == warps - 1;
    __threadfence();
  }
  return __shfl_sync(0xffffffffU, last, 0) != 0;
}

}  // namespace gpunn::cuda_tiled
