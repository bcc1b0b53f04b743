// Batch norm with the ReLU and the sums around it, fused into one kernel: the patterns of
// common/subgraphs/batch_norm.hpp, with a convolution in front of channels-last images in half precision.
//
// That convolution's output is written, since the backward reads it, and the statistics are those of its values as they
// are stored, in bf16 or f16, as they are op by op. Batch norm then reads it once instead of twice.
//
// H200, batch 512, against the sum of the ops by themselves (each of cuda_tiled): 64 channels of 32x32 with ReLU 138 us
// against 190, with sum and ReLU 165 against 285, backward through the ReLU 247 against 261; 128 of 16x16 53 against
// 88, 73 against 136, 125 against 135; 256 of 8x8 26 against 45, 35 against 70, 49 against 62. Equal bits.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <memory>

#include "device.hpp"

namespace gpunn::cuda_tiled {

plugin::SubgraphSupport query_norm(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);
// Creates a subgraph that query_norm has offered.
std::unique_ptr<plugin::Subgraph> create_norm(TiledDevice& device, const plugin::ProgramDesc& desc, std::size_t first,
                                              std::size_t count);

}  // namespace gpunn::cuda_tiled
