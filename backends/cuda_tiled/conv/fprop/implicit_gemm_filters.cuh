// Reorders the filters of an implicit GEMM to the order in which its blocks read them, and makes the table of its
// entries. A small kernel does both before the product.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "conv/fprop/implicit_gemm_entries.cuh"

namespace gpunn::cuda_tiled::conv {

inline constexpr int kReorderSide = 32;  // of a tile that a block reorders

// w[group][result][reduced][tap] to [group][entry][result].
__global__ __launch_bounds__(kReorderSide * 8) void reorder_forward(const float* w, float* filters, Entry* table,
                                                                    Plan plan) {
  __shared__ float tile[kReorderSide][kReorderSide + 1];
  const int taps = plan.rows.taps * plan.columns.taps;
  const int line = plan.reduced * taps;
  const int group = static_cast<int>(blockIdx.z);
  const int first_result = static_cast<int>(blockIdx.y) * kReorderSide;
  const int first = static_cast<int>(blockIdx.x) * kReorderSide;
  const int lane = static_cast<int>(threadIdx.x) % kReorderSide;
  const int warp = static_cast<int>(threadIdx.x) / kReorderSide;
  for (int i = warp; i < kReorderSide; i += 8) {
    const bool inside = first_result + i < plan.results && first + lane < line;
    tile[i][lane] =
        inside ? w[static_cast<int64_t>(group * plan.results + first_result + i) * line + first + lane] : 0.0F;
  }
  __syncthreads();
  for (int i = warp; i < kReorderSide && first + i < line; i += 8) {
    const int channel = (first + i) / taps;
    const int tap = (first + i) % taps;
    const int entry = tap * plan.reduced + channel;
    if (first_result + lane < plan.padded_results) {
      filters[(static_cast<int64_t>(group) * line + entry) * plan.padded_results + first_result + lane] = tile[lane][i];
    }
    if (group == 0 && first_result == 0 && lane == 0) table[entry] = entry_of(plan, tap, channel);
  }
}

// w[group][reduced][result][tap] to [group][entry][result].
__global__ void reorder_turned(const float* w, float* filters, Entry* table, Plan plan) {
  const int taps = plan.rows.taps * plan.columns.taps;
  const int result = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int channel = static_cast<int>(blockIdx.y);
  const int group = static_cast<int>(blockIdx.z);
  if (result >= plan.padded_results) return;
  const float* from = w + (static_cast<int64_t>(group * plan.reduced + channel) * plan.results + result) * taps;
  for (int tap = 0; tap < taps; ++tap) {
    const int entry = entry_index(plan, tap, channel);
    filters[(static_cast<int64_t>(group) * plan.entries() + entry) * plan.padded_results + result] =
        result < plan.results ? from[tap] : 0.0F;
    if (group == 0 && result == 0) table[entry] = entry_of(plan, tap, channel);
  }
}

}  // namespace gpunn::cuda_tiled::conv
