#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.hpp"

namespace gpunn::compiler {

using graph::Graph;
using graph::ValueId;

// When the bytes of a value come into being, and until when they are needed, counted in nodes. Bytes that values
// share, as views do, are looked at together.
struct ValueUse {
  int32_t first_write = -1;  // -1: they hold something when the program begins
  int32_t last_read = -1;    // -1: no node reads them; the number of nodes: they are needed after the program
};

// By value id. All that lives outside the arena is there before the program and needed after it, but for gradients that
// each run of the program writes before it reads them: nothing but the program looks at those.
std::vector<ValueUse> value_uses(const Graph& graph);

// Nodes that are run as one.
struct NodeRange {
  std::size_t first = 0, count = 0;
  std::size_t end() const { return first + count; }
};

// By value id, whether it is a value of the arena, and no node outside one and the same run touches its root.
std::vector<bool> internal_values(const Graph& graph, const std::vector<NodeRange>& runs);

}  // namespace gpunn::compiler
