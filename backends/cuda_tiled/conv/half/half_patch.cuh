// What the kernels of conv:half_patch share: a ring of stages of patches, as many as have room in shared memory.
#pragma once

#include <cstdint>

#include "shared_barrier.cuh"

namespace gpunn::cuda_tiled {

inline constexpr int kPatchTaps = 3;   // of a row, and of a column
inline constexpr int kPatchStep = 16;  // of K, that wgmma takes
inline constexpr int kLeastPatchStages = 2;
inline constexpr int kMostPatchStages = 6;
inline constexpr int kMostBox = 256;  // pixels of a row, and of a column, that TMA brings

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
