// Batch norm with the ReLU and the sums around it in the passes that batch norm takes over its tensors: the patterns of
// common/subgraphs/batch_norm.hpp. In f32 the bits are those of the ops one by one.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <memory>

namespace gpunn::cpu {

plugin::SubgraphSupport query_norm(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit, int threads);
// Creates a subgraph that query_norm has offered.
std::unique_ptr<plugin::Subgraph> create_norm(const plugin::ProgramDesc& desc, std::size_t first, std::size_t count,
                                              int threads);

}  // namespace gpunn::cpu
