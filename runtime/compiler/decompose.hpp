#pragma once

#include "compiler/provider.hpp"

namespace gpunn::compiler {

// Appends the parts of a node, which write its outputs. False: it has none, and nothing was appended.
bool append_parts(graph::Graph& graph, const graph::Node& node);

// Replaces every op that no plugin serves, and every composite that would hide a part served higher in the chain, by
// its decomposition, where all of that is served. What is left unserved is there as it was.
void decompose_unserved(graph::Graph& graph, const Provider& provider);

}  // namespace gpunn::compiler
