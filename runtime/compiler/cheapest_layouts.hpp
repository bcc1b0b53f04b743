#pragma once

#include <vector>

#include "compiler/provider.hpp"
#include "graph/graph.hpp"

namespace gpunn::compiler {

// The layout of the images of each node, with which the program takes least time: its ops, and the copies between two
// layouts that meet. `stays_packed`, by value: it is not stored otherwise; an op that works on a copy of it is.
// Copies keep the layout of what they read unless their readers want another.
std::vector<Layout> cheapest_layouts(const graph::Graph& graph, const Offers& offers,
                                     const std::vector<bool>& stays_packed);

}  // namespace gpunn::compiler
