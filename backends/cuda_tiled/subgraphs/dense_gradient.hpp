// The gradient behind a dense layer, fused into one kernel where the layer's input came out of a ReLU:
//
//   MATMUL, BIAS_ACTIVATION_BACKWARD     the mask and the bias's gradient in the epilogue of the product
//
// What the product makes is then neither written nor read before it is masked (gemm/masked.hpp). It is run by the
// variant that runs the product alone; where that has no such epilogue, or is faster without, the two ops are run one
// after the other.
//
// H200, a training step of perceptrons, so and op by op: 784-1024-1024-1024-10 at batch 512 in fp32 339.9 us, 345.4, in
// TF32 131.3, 143.4; 784-2048-2048-10 at batch 1024 825.0, 825.1 and 221.1, 225.6; five layers of 512 at batch 128
// 110.2, 117.1 and 103.2, 108.6.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <memory>

namespace gpunn::cuda_tiled {

class TiledDevice;

plugin::SubgraphSupport query_dense(const TiledDevice& device, const plugin::ProgramDesc& desc, std::size_t first,
                                    std::size_t limit);
// Creates a subgraph that query_dense has offered.
std::unique_ptr<plugin::Subgraph> create_dense(TiledDevice& device, const plugin::ProgramDesc& desc, std::size_t first,
                                               std::size_t count);

}  // namespace gpunn::cuda_tiled
