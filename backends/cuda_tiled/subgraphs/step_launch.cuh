// How the kernels of a step are launched: the plain ones by step_kernels.cu, the general ones by step_general.cu.
#pragma once

#include "cuda_common/check.hpp"
#include "launch.hpp"
#include "shared_memory.hpp"
#include "step_pass.cuh"
#include "step_update.cuh"

namespace gpunn::cuda_tiled {

// A block of the second kernel should find room beside one of the first.
template <class Kernel>
void prefer_shared_memory(Kernel kernel) {
  cuda::check(
      cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared),
      "asking for shared memory");
}

// Calls use(code) with the code of the first kernel.
template <bool GENERAL, class Use>
void with_step_code(const StepPlan& plan, Use use) {
  if (plan.images == OctetBlock::kImages) {
    if (plan.columns == kNoFilters) return use(StepCode<OctetBlock, kNoFilters, GENERAL>{});
    return use(StepCode<OctetBlock, kAnyColumns, GENERAL>{});
  }
  if (plan.columns == 5) return use(StepCode<PairBlock, 5, GENERAL>{});
  if (plan.columns == 3) return use(StepCode<PairBlock, 3, GENERAL>{});
  use(StepCode<PairBlock, kAnyColumns, GENERAL>{});
}

template <class B>
void launch_pass(const StepPlan& plan, const TensorsOf<B>& tensors, cudaStream_t stream) {
  allow_shared_memory(step_pass<B>, plan.shared_bytes);
  if constexpr (B::kBlocks == 1) {
    prefer_shared_memory(step_pass<B>);
    prefer_shared_memory(step_update<B::kGeneral>);
  }
  const int blocks = (plan.batch + B::kImages - 1) / B::kImages * B::kImages;
  launch_with(step_pass<B>,
              {dim3(static_cast<unsigned>(blocks)), dim3(B::kThreads), static_cast<unsigned>(plan.shared_bytes)},
              {.cluster = dim3(B::kImages), .early = true}, stream, tensors);
}

template <bool GENERAL>
void launch_update(const StepPlan& plan, const UpdateTensors<GENERAL>& tensors, cudaStream_t stream) {
  // One block more counts, another one draws samples.
  const int blocks = plan.update_blocks + (GENERAL && plan.ready != 0 ? 1 : 2);
  launch_with(step_update<GENERAL>, {dim3(static_cast<unsigned>(blocks)), dim3(kUpdateThreads)}, {.early = true},
              stream, tensors);
}

}  // namespace gpunn::cuda_tiled
