// The kernels of a fused training step, as the host calls them.
#pragma once

#include <cuda_runtime_api.h>

#include "subgraphs/step/plan.hpp"
#include "subgraphs/step/tensors.hpp"

namespace gpunn::cuda_tiled {

// The resources of the current device for the kernels; no shared memory if they can't run.
StepLimits step_limits();

// Whether the device runs all blocks of the first kernel at the same time, if they wait for each other.
bool step_is_resident(const StepPlan& plan);

// Runs one whole step on `stream`. Throws if a launch fails.
void launch_step(const StepPlan& plan, const RankTensors& tensors, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
