// Plans the kernels of large batches (rounds.cuh): a block processes one image after another.
#pragma once

#include "subgraphs/step/plan.hpp"

namespace gpunn::cuda_tiled {

// Lays out shared memory, and counts the blocks. Returns false if a block doesn't fit.
bool lay_out_rounds(StepPlan& plan, const StepLimits& limits);

// Whether a plan for large batches is faster than `single`, which has a block an image.
bool rounds_pay(const StepPlan& single, const StepLimits& limits);

}  // namespace gpunn::cuda_tiled
