#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "graph/graph.hpp"

namespace gpunn::compiler {

// Makes the nodes from `first` on compute in half precision (bf16 or f16) where that is useful: matrix products and
// convolutions, and every op after them whose row allows half precision. Statistics, softmax and losses stay f32, as do
// parameters: products read copies of them. The classes of ops are those of PyTorch's autocast, except for additive ops
// and layer norm, which follow their operands. `result` is the value of these nodes that is read next: in f32. The
// nodes in `wide` stay f32.
graph::ValueId use_half_precision(graph::Graph& graph, std::size_t first, DType half, graph::ValueId result,
                                  const std::set<std::size_t>& wide = {});

// The same where several values are read next; those of half precision become their copies in f32.
void use_half_precision(graph::Graph& graph, std::size_t first, DType half, std::vector<graph::ValueId>& results);

}  // namespace gpunn::compiler
