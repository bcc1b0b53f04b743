#pragma once

#include "graph/graph.hpp"

namespace gpunn::compiler {

// Has values of half precision converted to f32 again for nodes far behind those that the conversion was made for. So
// an activation that the gradients read is kept in half precision, and not as an f32 copy of twice the size. Small
// values keep one conversion.
void widen_near_use(graph::Graph& graph);

}  // namespace gpunn::compiler
