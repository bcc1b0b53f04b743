// Launches the kernels of a step. Each set of parts has a source file with its instances, which instantiates these
// templates; kernels.cu chooses among them.
#pragma once

#include "cuda_common/check.hpp"
#include "launch.hpp"
#include "shared_memory.hpp"
#include "subgraphs/step/pass.cuh"
#include "subgraphs/step/update.cuh"

namespace gpunn::cuda_tiled {

// A block of the second kernel should find room beside one of the first.
template <class Kernel>
void prefer_shared_memory(Kernel kernel) {
  cuda::check(
      cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared),
      "asking for shared memory");
}

// Calls use(code) with the code of the first kernel. Instances with some parts exist for the usual filters alone, as
// instance_with() in plan.cpp knows.
template <unsigned PARTS, class Use>
void with_step_code(const StepPlan& plan, Use use) {
  if constexpr (PARTS == kNoParts || PARTS == kAllParts) {
    if (plan.columns == kAnyColumns || (plan.images == OctetBlock::kImages && plan.columns != kNoFilters)) {
      if (plan.images == OctetBlock::kImages) return use(StepCode<OctetBlock, kAnyColumns, PARTS>{});
      return use(StepCode<PairBlock, kAnyColumns, PARTS>{});
    }
  }
  if (plan.images == OctetBlock::kImages) return use(StepCode<OctetBlock, kNoFilters, PARTS>{});
  if (plan.columns == 5) return use(StepCode<PairBlock, 5, PARTS>{});
  use(StepCode<PairBlock, 3, PARTS>{});
}

template <unsigned PARTS>
void launch_pass(const StepPlan& plan, const GeneralTensors& tensors, cudaStream_t stream) {
  with_step_code<PARTS>(plan, [&](auto code) {
    using B = decltype(code);
    allow_shared_memory(step_pass<B>, plan.shared_bytes);
    if constexpr (B::kBlocks == 1) prefer_shared_memory(step_pass<B>);
    const int blocks = (plan.batch + B::kImages - 1) / B::kImages * B::kImages;
    launch_with(step_pass<B>,
                {dim3(static_cast<unsigned>(blocks)), dim3(B::kThreads), static_cast<unsigned>(plan.shared_bytes)},
                {.cluster = dim3(B::kImages), .early = true}, stream, tensors);
  });
}

// Whether the device runs all blocks of the first kernel at the same time.
template <unsigned PARTS>
bool pass_is_resident(const StepPlan& plan) {
  bool resident = false;
  with_step_code<PARTS>(plan, [&](auto code) {
    using B = decltype(code);
    allow_shared_memory(step_pass<B>, plan.shared_bytes);
    const int clusters = (plan.batch + B::kImages - 1) / B::kImages;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = B::kImages;
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(clusters * B::kImages));
    config.blockDim = dim3(B::kThreads);
    config.dynamicSmemBytes = static_cast<std::size_t>(plan.shared_bytes);
    config.attrs = &attribute;
    config.numAttrs = 1;
    int most = 0;
    cuda::check(cudaOccupancyMaxActiveClusters(&most, step_pass<B>, &config), "asking for resident clusters");
    resident = clusters <= most;
  });
  return resident;
}

template <unsigned PARTS>
void launch_update(const StepPlan& plan, const RankTensors& tensors, cudaStream_t stream) {
  if (plan.images == PairBlock::kImages) prefer_shared_memory(step_update<PARTS>);
  // One block more counts, another one draws samples.
  const int blocks = plan.update_blocks + (plan.ready != 0 ? 1 : 2);
  launch_with(step_update<PARTS>, {dim3(static_cast<unsigned>(blocks)), dim3(kUpdateThreads)}, {.early = true}, stream,
              tensors);
}

// Replaces the first kernel if batches are large.
void launch_rounds(const StepPlan& plan, const GeneralTensors& tensors, cudaStream_t stream);

// Kernel 3.
void launch_flat(const StepPlan& plan, const GeneralTensors& tensors, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
