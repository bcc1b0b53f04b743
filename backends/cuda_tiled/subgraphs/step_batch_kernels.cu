// The first kernel of a step with other losses or with images that are shifted or made by ops before.
#include "step_launch.cuh"

namespace gpunn::cuda_tiled {

template void launch_pass<kLossPart | kBatchPart>(const StepPlan&, const GeneralTensors&, cudaStream_t);

}  // namespace gpunn::cuda_tiled
