// Whole training steps of small networks as fused subgraphs.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <memory>

namespace gpunn::cuda_tiled {

plugin::SubgraphSupport query_step(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);
std::unique_ptr<plugin::Subgraph> create_step(const plugin::ProgramDesc& desc, std::size_t first, std::size_t count);

}  // namespace gpunn::cuda_tiled
