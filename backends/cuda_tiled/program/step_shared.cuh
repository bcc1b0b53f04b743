// Shared memory of the first kernel: the plan, then what the plan puts where. Functions that are not inlined reach it
// by its name, so that the compiler knows which memory it is.
#pragma once

#include "step_plan.hpp"

namespace gpunn::cuda_tiled {

extern __shared__ float4 step_shared[];

__device__ __forceinline__ const StepPlan& shared_plan() { return *reinterpret_cast<const StepPlan*>(step_shared); }
__device__ __forceinline__ float* shared_floats() { return reinterpret_cast<float*>(step_shared); }
__device__ __forceinline__ uint8_t* shared_bytes() { return reinterpret_cast<uint8_t*>(step_shared); }

__device__ __forceinline__ int divide(int n, const Divisor& by) {
  return static_cast<int>(__umulhi(static_cast<unsigned>(n), by.magic) + (static_cast<unsigned>(n) & by.whole));
}

// Copies `n` 16-byte pieces by the whole block.
__device__ __forceinline__ void copy_plan(const StepPlan* from, float4* to, int threads) {
  for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(sizeof(StepPlan) / 16); i += threads) {
    to[i] = reinterpret_cast<const float4*>(from)[i];
  }
}

}  // namespace gpunn::cuda_tiled
