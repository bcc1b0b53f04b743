// Instances of the kernels for large batches, without optional parts.
#include "subgraphs/step/rounds_launch.cuh"

namespace gpunn::cuda_tiled {

extern template void launch_rounds_with<kRoundParts>(const StepPlan&, const GeneralTensors&, cudaStream_t);

void launch_rounds(const StepPlan& plan, const GeneralTensors& tensors, cudaStream_t stream) {
  if (plan.parts == kNoParts) return launch_rounds_with<kNoParts>(plan, tensors, stream);
  launch_rounds_with<kRoundParts>(plan, tensors, stream);
}

}  // namespace gpunn::cuda_tiled
