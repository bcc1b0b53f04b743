// The shared memory of the first kernel: the plan, then the buffers that the plan lays out. Functions that are not
// inlined access it by name, so that the compiler knows that it is shared memory.
#pragma once

#include <type_traits>

#include "subgraphs/step/blocks.hpp"
#include "subgraphs/step/plan.hpp"
#include "subgraphs/step/tensors.hpp"

namespace gpunn::cuda_tiled {

extern __shared__ float4 step_shared[];

__device__ __forceinline__ const StepPlan& shared_plan() { return *reinterpret_cast<const StepPlan*>(step_shared); }
__device__ __forceinline__ float* shared_floats() { return reinterpret_cast<float*>(step_shared); }
__device__ __forceinline__ uint8_t* shared_bytes() { return reinterpret_cast<uint8_t*>(step_shared); }

// The barriers of what arrives: the dense layers' weights, and what the blocks of the cluster send each other.
struct StepArrivals {
  uint64_t weights;
  uint64_t convs[2 * kMostStepConvs];  // of all warps but the last, behind each convolution's sums and its pooling
  uint64_t pooled;                     // the first dense layer's x
  uint64_t forward[kMostStepDense];    // a dense layer's outputs
  uint64_t backward[kMostStepDense];   // shares of the gradient towards its x
};

__device__ __forceinline__ StepArrivals& shared_arrivals() {
  __shared__ StepArrivals arrivals;
  return arrivals;
}

// Barriers of kernels with norms or other finishes, of all warps but the last, in the forward convolutions. Each is
// used once.
inline constexpr int kStepMeetings = 5 * kMostStepConvs;
__device__ __forceinline__ uint64_t* shared_meetings() {
  __shared__ uint64_t meetings[kStepMeetings];
  return meetings;
}

// The tensors of a kernel.
template <class B>
using TensorsOf = std::conditional_t<B::kGeneral, GeneralTensors, StepTensors>;

__device__ __forceinline__ int divide(int n, const Divisor& by) {
  return static_cast<int>(__umulhi(static_cast<unsigned>(n), by.magic) + (static_cast<unsigned>(n) & by.whole));
}

// One of the two.
__device__ __forceinline__ NextBatch& noted_batch(const StepPlan& plan, NotedBatches* noted, int which) {
  const auto bytes = static_cast<int>(next_batch_bytes(plan));
  return *reinterpret_cast<NextBatch*>(reinterpret_cast<char*>(noted + 1) + which * bytes);
}

// By the whole block.
template <bool GENERAL>
__device__ __forceinline__ void copy_plan(const StepPlan* from, float4* to, int threads) {
  for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(plan_bytes(GENERAL) / 16); i += threads) {
    to[i] = reinterpret_cast<const float4*>(from)[i];
  }
}

}  // namespace gpunn::cuda_tiled
