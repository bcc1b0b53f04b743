// Instances of a step's first kernel with other activations, means of windows or dropout.
#include "subgraphs/step/launch.cuh"

namespace gpunn::cuda_tiled {

template void launch_pass<kFinishPart>(const StepPlan&, const GeneralTensors&, cudaStream_t);

}  // namespace gpunn::cuda_tiled
