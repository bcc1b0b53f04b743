// The general kernels of a step: what the plain ones of step_kernels.cu do not know.
//
// H200, batch 128, a training step in us; the plain networks take 31.7 (LeNet-5) and 14.5 (MLP 784-128-10).
//
//   LeNet-5  RMSprop                                              38.3
//            dropout behind poolings and dense layers             41.5
//            shifts, label smoothing, a norm's bound, an average  43.8
//            tanh and means of windows                            46.6
//            GELU                                                 47.5
//            batch mixed or images turned by ops before the step  54.0, 55.6
//            batch norm behind convolutions, behind all layers    63.6, 80.5
//   MLP      dropout, AdamW                                       16.7
//            tanh, mean squared error                             17.4
//            batch norm                                           21.3
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
