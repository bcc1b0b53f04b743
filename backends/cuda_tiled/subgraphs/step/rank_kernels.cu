// Instances of a step's second kernel that add up gradients over ranks.
#include "subgraphs/step/launch.cuh"

namespace gpunn::cuda_tiled {

template void launch_update<kRankPart>(const StepPlan&, const RankTensors&, cudaStream_t);
template void launch_update<kRankPart | kAllUpdateParts>(const StepPlan&, const RankTensors&, cudaStream_t);

}  // namespace gpunn::cuda_tiled
