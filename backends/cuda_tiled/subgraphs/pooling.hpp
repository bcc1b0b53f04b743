// Pooling with its neighbouring ops, fused into one kernel:
//
//   CONV2D_BIAS_ACTIVATION, MAX_POOL2D               for few channels: pools while the planes are in shared memory
//   MAX_POOL2D_BACKWARD, RELU_BACKWARD               the pass that writes the gradient applies the mask
//   MAX_POOL2D_BACKWARD, BIAS_ACTIVATION_BACKWARD    that pass also computes the bias's gradient
//   AVG_POOL2D_BACKWARD with either
//
// The convolution's output is written if other ops, such as the gradients, need it. The gradient between pooling and
// ReLU is neither written nor read. In front of BATCH_NORM_BACKWARD the second pattern gains more than the mask inside
// that op (batch_norm.hpp). H200, batch 512, 64 channels of 32x32: the batch norm takes 196 us instead of 243, and the
// pooling no more.
//
// H200, against the sum of the separate ops (each of cuda_tiled or, if it has none, of its base), us:
//
//   maxima of 2x2, batch 512, with bias: 6 channels of 28x28 7.4 against 17.3, 16 of 8x8 4.2 against 7.7
//   batch 128: 64 channels of 32x32 22.8 against 59.5, 128 of 16x16 8.5 against 34.5, 256 of 8x8 4.6 against 26.2
//   without bias: 64 channels of 32x32 20.3 against 44.5, 128 of 16x16 7.7 against 20.4, 256 of 8x8 4.2 against 8.2
//   maxima of 3x3 at stride 2, which overlap: 64 channels of 32x32 60.8 against 312, batch 32 of 55x55 50.6 against 251
//   means of 2x2: 64 channels of 32x32 22.8 against 223
//   the convolution: 5x5, 1 to 6 channels, 28x28, batch 512 9.5 against 12.4 (9.1 if its own output is not needed),
//   batch 128 3.9 against 5.5; 6 to 16 channels, 12x12, batch 512 7.4 against 8.9; 3x3, 8 channels, 16x16 9.7 against
//   12.8, 3 to 16 channels, 32x32, batch 128 8.8 against 11.2
//
//   training steps: three times 3x3, batch norm, ReLU and maxima of 2x2, 64, 128 and 256 channels of 28x28, batch 128,
//   610 against 637; LeNet-like with dropout, batch 512: 131 against 153
//
// The bits are equal, with two exceptions. The bias's gradient is summed in another order, fixed by the shape. The
// convolution may differ if another kernel than direct:1 would be chosen.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <memory>

namespace gpunn::cuda_tiled {

plugin::SubgraphSupport query_pool(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);
// Creates a subgraph that query_pool has offered.
std::unique_ptr<plugin::Subgraph> create_pool(const plugin::ProgramDesc& desc, std::size_t first, std::size_t count);

}  // namespace gpunn::cuda_tiled
