#include "cuda_common/check.hpp"
#include "step_kernels.hpp"
#include "step_launch.cuh"

namespace gpunn::cuda_tiled {

void launch_general_step(const StepPlan& plan, const GeneralTensors& tensors, cudaStream_t stream) {
  with_step_code<true>(plan, [&](auto code) { launch_pass<decltype(code)>(plan, tensors, stream); });
  launch_update<true>(plan, tensors, stream);
  if (plan.flat_blocks == 0) return;
  // Another division of a multiprocessor's memory would have to wait until it is idle.
  if (plan.images == PairBlock::kImages) prefer_shared_memory(step_flat);
  launch_with(step_flat, {dim3(static_cast<unsigned>(plan.flat_blocks)), dim3(kUpdateThreads)}, {.early = true}, stream,
              tensors);
}

bool general_step_is_resident(const StepPlan& plan) {
  bool resident = false;
  with_step_code<true>(plan, [&](auto code) {
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

}  // namespace gpunn::cuda_tiled
