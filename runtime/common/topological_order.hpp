#pragma once

#include <cstddef>
#include <vector>

namespace gpunn {

// The nodes such that each comes after its inputs, of several that could be next the first (Kahn's algorithm).
// `inputs[i]` are the indices of the nodes that node i needs. Nodes on a cycle, or behind one, are left out.
std::vector<std::size_t> topological_order(const std::vector<std::vector<std::size_t>>& inputs);

}  // namespace gpunn
