#pragma once

#include <cstddef>
#include <set>

#include "graph/graph.hpp"

namespace gpunn::compiler {

// Has the nodes from `first` on compute in half precision (bf16 or f16) where that serves: matrix products and
// convolutions, and every op behind them whose row lets its tensors be of it. Statistics, norms of rows, softmax and
// losses stay f32, as do parameters: what a product reads of one is a copy. The class of each op is that of PyTorch's
// autocast, but for additive ops, which follow their operands. `result`, a value of these nodes, is what is read next:
// the value in f32. `wide`: nodes that stay f32.
graph::ValueId use_half_precision(graph::Graph& graph, std::size_t first, DType half, graph::ValueId result,
                                  const std::set<std::size_t>& wide = {});

}  // namespace gpunn::compiler
