// The interface of the GEMM ladder's Hopper kernels to its variants.
#pragma once

#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>

#include "cuda_common/add_op.hpp"
#include "epilogue.cuh"
#include "gemm/gemm.hpp"

namespace gpunn::cuda_tiled {

enum class WgmmaKernel : uint8_t {
  kPersistent,  // tiles of 128 x 256
  kSplit,       // tiles of 128 x 128, K split over the blocks of a cluster
  kSplitLow,    // the same with tiles of 64 x 128
  kSmall,       // tiles of 128 x 64 to 64 x 32, about one a multiprocessor
};

// Whether the kernels are in this build: without sm_90a they are empty.
bool wgmma_compiled();

// Why `kernel` can't serve the problem, in either precision; empty if it can.
std::string wgmma_refuses(WgmmaKernel kernel, const Gemm& problem);

uint64_t wgmma_tf32_workspace(WgmmaKernel kernel, const Gemm& problem);
void wgmma_tf32(WgmmaKernel kernel, const Gemm& problem, cudaStream_t stream, const cuda::OpArgs& args);

uint64_t wgmma_bf16_workspace(const Gemm& problem);
void wgmma_bf16(WgmmaKernel kernel, const Gemm& problem, cudaStream_t stream, const cuda::OpArgs& args);

// BF16 only: why the product of 128 x 256 tiles that rounds its operands while it runs can't serve the problem.
std::string wgmma_rounding_refuses(const Gemm& problem);
uint64_t wgmma_rounding_workspace(const Gemm& problem);
void wgmma_rounding(const Gemm& problem, cudaStream_t stream, const cuda::OpArgs& args);

// The product alone, for a and b that are already bfloat16, with lines `pitch_a` and `pitch_b` apart (multiples of 8).
void wgmma_bf16_product(WgmmaKernel kernel, const backends::Matmul& shape, const Epilogue& epilogue, const uint16_t* a,
                        int64_t pitch_a, const uint16_t* b, int64_t pitch_b, float* y, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
