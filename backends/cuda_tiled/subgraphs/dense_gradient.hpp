// The gradient of a dense layer's input, fused into one kernel if a ReLU made that input:
//
//   MATMUL, BIAS_ACTIVATION_BACKWARD     the mask and the bias's gradient in the epilogue of the product
//
// The unmasked product is then neither written nor read (gemm/masked.hpp). The variant that would run the product alone
// runs it. If that variant has no such epilogue, or is faster without, the two ops run one after the other.
//
// H200, a training step of perceptrons in us, fused and op by op. 784-1024-1024-1024-10 at batch 512: 339.9, 345.4 in
// fp32; 131.3, 143.4 in TF32. 784-2048-2048-10 at batch 1024: 825.0, 825.1 and 221.1, 225.6. Five layers of 512 at
// batch 128: 110.2, 117.1 and 103.2, 108.6.
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
