#pragma once

#include "compiler/provider.hpp"

namespace gpunn::compiler {

// Appends the parts of a node, which write its outputs. False: it has none, and nothing was appended.
bool append_parts(graph::Graph& graph, const graph::Node& node);

// Replaces each op that no plugin serves by its decomposition, and each composite that would hide a part served higher
// in the chain, provided that all parts are served. Other unserved ops stay unchanged.
void decompose_unserved(graph::Graph& graph, const Provider& provider);

}  // namespace gpunn::compiler
