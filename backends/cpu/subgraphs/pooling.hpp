// MAX_POOL2D_BACKWARD with the RELU_BACKWARD or BIAS_ACTIVATION_BACKWARD behind it. The gradient of a maximum goes to
// where the maximum is, and ReLU lets it through if the maximum is positive. So the mask and the bias's sums are taken
// of the pooled images, in front of the pooling: a quarter of the memory with windows of 2x2, and the gradient of the
// whole images is written once.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <memory>

namespace gpunn::cpu {

// `device` serves both ops.
plugin::SubgraphSupport query_pool(const plugin::Device& device, const plugin::ProgramDesc& desc, std::size_t first,
                                   std::size_t limit);
// Creates a subgraph that query_pool has offered.
std::unique_ptr<plugin::Subgraph> create_pool(const plugin::Device& device, const plugin::ProgramDesc& desc,
                                              std::size_t first, std::size_t count);

}  // namespace gpunn::cpu
