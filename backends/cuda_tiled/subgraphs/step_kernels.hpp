// The kernels of a step.
#pragma once

#include <cuda_runtime_api.h>

#include "step_plan.hpp"

namespace gpunn::cuda_tiled {

// Bytes of shared memory that a block of the first kernel may have on the current device; 0 where it can't run.
int step_shared_limit();

// Whether the device runs all blocks of the first kernel at the same time, where they wait for each other.
bool step_is_resident(const StepPlan& plan);

// One whole step on `stream`. Throws where a launch fails.
void launch_step(const StepPlan& plan, const GeneralTensors& tensors, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
