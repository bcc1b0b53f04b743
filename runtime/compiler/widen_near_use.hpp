#pragma once

#include "graph/graph.hpp"

namespace gpunn::compiler {

// Converts values of half precision to f32 again for nodes far behind those that the first conversion was made for.
// Activations that the gradients read are so kept in half precision, not as f32 copies of twice the size. Small values
// keep one conversion.
void widen_near_use(graph::Graph& graph);

}  // namespace gpunn::compiler
