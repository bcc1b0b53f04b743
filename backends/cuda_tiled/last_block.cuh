// Blocks, or warps, each of which leaves a partial result in memory; the one that comes last adds them, in their order:
// equal inputs give equal bits, without a second launch. Each counts its turn on a counter (counters.hpp).
#pragma once

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

// This block's turn among `blocks`; all of its threads must take part. The counter is 0 again afterwards. Between the
// two calls a block can do what the others need not wait for.
class BlockTurn {
 public:
  // What the block wrote before is visible to the last one.
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

// Whether a warp is the last of `warps` to come here, of whose lanes the first has written a part; all must take part.
// What the first lanes of the others wrote before is visible to it. The counter is 0 again afterwards.
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
