#pragma once

#include <functional>

#include "graph/graph.hpp"

namespace gpunn::graph {

// The place in the backend's chain that serves an op: 0 is the overlay on top, -1: nobody.
using Provider = std::function<int(const OpSignature&)>;

// Replaces chains of core ops by the composite that a plugin offers: CONV2D or MATMUL with BIAS_ADD and RELU,
// RELU_BACKWARD with BIAS_BACKWARD. A composite is taken only from a plugin at least as high in the chain as those that
// serve its parts, so that a base's fused kernel never hides an overlay's own.
void fuse(Graph& graph, const Provider& provider);

// Replaces every op that no plugin serves, and every composite that would hide a part served higher in the chain, by
// its decomposition, where all of that is served. What is left unserved is there as it was.
void decompose_unserved(Graph& graph, const Provider& provider);

}  // namespace gpunn::graph
