// Whole training steps of small networks as fused subgraphs.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <memory>

#include "cuda_common/peer_memory.hpp"

namespace gpunn::cuda_tiled {

// `group`: ranks over which a step may add up its gradients; nullptr: none.
plugin::SubgraphSupport query_step(const cuda::PeerGroup* group, const plugin::ProgramDesc& desc, std::size_t first,
                                   std::size_t limit);
std::unique_ptr<plugin::Subgraph> create_step(cuda::PeerGroup* group, const plugin::ProgramDesc& desc,
                                              std::size_t first, std::size_t count);

}  // namespace gpunn::cuda_tiled
