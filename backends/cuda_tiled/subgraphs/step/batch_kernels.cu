// Instances of a step's first kernel with other losses, or with images that are shifted or made by earlier ops.
#include "subgraphs/step/launch.cuh"

namespace gpunn::cuda_tiled {

template void launch_pass<kLossPart | kBatchPart>(const StepPlan&, const GeneralTensors&, cudaStream_t);

}  // namespace gpunn::cuda_tiled
