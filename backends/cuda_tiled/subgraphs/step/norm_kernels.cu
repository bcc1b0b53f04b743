// Instances of a step's kernels that add only batch norm to the plain ones.
#include "subgraphs/step/launch.cuh"

namespace gpunn::cuda_tiled {

template void launch_pass<kNormPart>(const StepPlan&, const GeneralTensors&, cudaStream_t);
template bool pass_is_resident<kNormPart>(const StepPlan&);
template void launch_update<kNormPart>(const StepPlan&, const RankTensors&, cudaStream_t);

}  // namespace gpunn::cuda_tiled
