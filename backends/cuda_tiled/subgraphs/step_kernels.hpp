// The kernels of a step.
#pragma once

#include <cuda_runtime_api.h>

#include "step_plan.hpp"

namespace gpunn::cuda_tiled {

// What the current device has for the kernels; no shared memory where they can't run.
StepLimits step_limits();

// Whether the device runs all blocks of the first kernel at the same time, where they wait for each other.
bool step_is_resident(const StepPlan& plan);

// One whole step on `stream`. Throws where a launch fails.
void launch_step(const StepPlan& plan, const GeneralTensors& tensors, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
