// Matrix products by mma.sync, for GPUs from sm_80 on and for every shape.
#pragma once

#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>

#include "cuda_common/add_op.hpp"
#include "gemm/gemm.hpp"

namespace gpunn::cuda_tiled {

std::string mma_sync_refuses(const Gemm& problem);

// Tiles of 128 x 128.
void mma_sync_big(const Gemm& problem, cudaStream_t stream, const cuda::OpArgs& args);

// Tiles of 64 x 64. If there are few of them, K is split into parts (split-K).
uint64_t mma_sync_small_workspace(const Gemm& problem);
void mma_sync_small(const Gemm& problem, cudaStream_t stream, const cuda::OpArgs& args);

}  // namespace gpunn::cuda_tiled
