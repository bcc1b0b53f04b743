// Batch norm with the ReLU and the sums around it, fused into one kernel. The patterns are those of
// common/subgraphs/batch_norm.hpp, also with a convolution in front, for channels-last images in half precision.
//
// The output of that convolution is written, since the backward pass reads it. The statistics are those of the values
// as stored, in bf16 or f16, exactly as op by op. Batch norm then reads them once instead of twice.
//
// H200, batch 512, against the sum of the separate ops (all of cuda_tiled): 64 channels of 32x32 with ReLU 138 us
// against 190, with sum and ReLU 165 against 285, backward through the ReLU 247 against 261. 128 of 16x16: 53 against
// 88, 73 against 136, 125 against 135. 256 of 8x8: 26 against 45, 35 against 70, 49 against 62. Equal bits.
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
