// What the kernels of conv:half_patch share: a ring of stages of patches, as many as have room in shared memory.
#pragma once

#include <cstdint>

#include "conv/half/half_patch.hpp"
#include "shared_barrier.cuh"

namespace gpunn::cuda_tiled {

struct PatchBarriers {
  uint64_t full[kMostPatchStages];
  uint64_t empty[kMostPatchStages];
};

// Which stage of the ring is next, and in which round.
struct PatchTurn {
  __device__ __forceinline__ explicit PatchTurn(int of) : stages(of) {}

  __device__ __forceinline__ void advance() {
    if (++stage == stages) {
      stage = 0;
      phase ^= 1U;
    }
  }

  int stages;
  int stage = 0;
  uint32_t phase = 0;
};

}  // namespace gpunn::cuda_tiled
