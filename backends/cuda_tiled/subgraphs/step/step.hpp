// Whole training steps of small networks as fused subgraphs. The only header of this folder for others.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <memory>

namespace gpunn::cuda {
class PeerGroup;
}  // namespace gpunn::cuda

namespace gpunn::cuda_tiled {

// `group`: ranks over which a step may add up its gradients; nullptr: none.
plugin::SubgraphSupport query_step(const cuda::PeerGroup* group, const plugin::ProgramDesc& desc, std::size_t first,
                                   std::size_t limit);
std::unique_ptr<plugin::Subgraph> create_step(cuda::PeerGroup* group, const plugin::ProgramDesc& desc,
                                              std::size_t first, std::size_t count);

// A GPU that is only described.
struct StepGpu {
  int shared_memory = 0;  // bytes that a block may ask for
  int multiprocessors = 0;
};

// As query_step(), of `world` ranks with such a GPU each. It runs all blocks that wait for each other at the same time.
plugin::SubgraphSupport query_step(const StepGpu& gpu, int world, const plugin::ProgramDesc& desc, std::size_t first,
                                   std::size_t limit);

}  // namespace gpunn::cuda_tiled
