// The launches of the sliding-window kernels, by layout and pass.
#pragma once

#include <cuda_runtime_api.h>

#include "conv/depthwise/depthwise_plan.hpp"

namespace gpunn::cuda_tiled::depthwise {

void forward_of_packed(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream);
void data_gradient_of_packed(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream);
void weight_gradient_of_packed(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream);

void forward_of_channels_last(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream);
void data_gradient_of_channels_last(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream);
void weight_gradient_of_channels_last(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream);

// The plan for tensors at `from`. If they are not aligned, planes have the same offsets in shared memory as in global
// memory.
PackedPlan packed_plan_at(const DepthwiseProblem& problem, const void* from);

}  // namespace gpunn::cuda_tiled::depthwise
