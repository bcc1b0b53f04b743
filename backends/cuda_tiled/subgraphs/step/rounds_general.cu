// Instances of the kernels for large batches, with all parts that they support.
#include "subgraphs/step/rounds_launch.cuh"

namespace gpunn::cuda_tiled {

template void launch_rounds_with<kRoundParts>(const StepPlan&, const GeneralTensors&, cudaStream_t);

}  // namespace gpunn::cuda_tiled
