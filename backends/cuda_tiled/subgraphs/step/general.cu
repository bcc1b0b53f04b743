// Instances of a step's kernels with all optional parts, and kernel 3.
//
// H200, batch 128, a training step in us. The plain networks take 31.7 (LeNet-5) and 14.8 (MLP 784-128-10). Most of
// these cases run on an instance of fewer parts: RMSprop takes 38.3 us with all parts.
//
//   LeNet-5  RMSprop                                              32.5
//            shifts                                               32.6
//            dropout behind poolings and dense layers             38.9
//            shifts, label smoothing, a norm's bound, an average  39.1
//            tanh and means of windows                            43.1
//            GELU                                                 43.8
//            batch mixed by ops before the step                   51.6
//            batch norm behind convolutions, behind all layers    53.4, 62.7
//   MLP      dropout, AdamW                                       15.7
//            tanh, mean squared error                             17.4
//            batch norm                                           19.2
#include "subgraphs/step/flat.cuh"
#include "subgraphs/step/launch.cuh"

namespace gpunn::cuda_tiled {

template void launch_pass<kAllParts>(const StepPlan&, const GeneralTensors&, cudaStream_t);
template bool pass_is_resident<kAllParts>(const StepPlan&);
template void launch_update<kAllUpdateParts>(const StepPlan&, const RankTensors&, cudaStream_t);

void launch_flat(const StepPlan& plan, const GeneralTensors& tensors, cudaStream_t stream) {
  // Another division of a multiprocessor's memory would have to wait until it is idle.
  if (plan.images == PairBlock::kImages) prefer_shared_memory(step_flat);
  launch_with(step_flat, {dim3(static_cast<unsigned>(plan.flat_blocks)), dim3(kUpdateThreads)}, {.early = true}, stream,
              tensors);
}

}  // namespace gpunn::cuda_tiled
