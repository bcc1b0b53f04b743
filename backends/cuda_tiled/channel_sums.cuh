// The sum of a channel by several thread blocks, each of which has a share of the channel. The block that finishes last
// adds the shares in their order, so that equal inputs give equal bits without a second launch. Each channel has its
// own counter: with a single counter one block would add all channels.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "last_block.cuh"

namespace gpunn::cuda_tiled {

struct ChannelSums {
  float* of_shares;  // [channels, shares]; not used where there is one share
  float* sums;
  unsigned* counters;  // a Counters (counters.hpp) of as many as there are channels
  uint32_t shares;
};

// One whole warp of each block must call it; its first lane holds the sum of the share.
__device__ __forceinline__ void add_share(float mine, uint32_t channel, uint32_t share, const ChannelSums& to) {
  constexpr unsigned kAllLanes = 0xffffffffU;
  const unsigned lane = threadIdx.x % 32;
  if (to.shares == 1) {
    if (lane == 0) to.sums[channel] = mine;
    return;
  }
  float* const shares = to.of_shares + static_cast<int64_t>(channel) * to.shares;
  if (lane == 0) shares[share] = mine;
  if (!is_last_warp(to.counters + channel, to.shares)) return;
  float sum = 0.0F;
  for (uint32_t i = lane; i < to.shares; i += 32) sum += __ldcg(shares + i);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(kAllLanes, sum, offset);
  if (lane == 0) to.sums[channel] = sum;
}

}  // namespace gpunn::cuda_tiled
