// The gradient behind a dense layer, claimed as one where the layer's input came out of a ReLU:
//
//   MATMUL, BIAS_ACTIVATION_BACKWARD     the mask and the bias's gradient in the epilogue of the product
//
// What the product makes is then neither written nor read before it is masked (gemm/masked.hpp). It is run by the rung
// that runs the product alone; where that has no such epilogue, or is faster without, the two ops are run one after the
// other.
//
// H200: MEASURED
#pragma once

#include <gpunn/program.hpp>

#include <cstddef>
#include <memory>

namespace gpunn::cuda_tiled {

class TiledDevice;

plugin::ProgramClaim claim_dense(const TiledDevice& device, const plugin::ProgramDesc& desc, std::size_t first,
                                 std::size_t limit);
// Of a run that claim_dense claims as a whole.
std::unique_ptr<plugin::Program> create_dense(TiledDevice& device, const plugin::ProgramDesc& desc, std::size_t first,
                                              std::size_t count);

}  // namespace gpunn::cuda_tiled
