#pragma once

#include <span>
#include <vector>

#include "compiler/memory_plan.hpp"
#include "execution/backend.hpp"
#include "execution/subgraph.hpp"
#include "graph/graph.hpp"

namespace gpunn::execution {

// A program made ready for one backend.
struct CompiledProgram {
  graph::Graph graph;                 // fused and decomposed to what the backend serves
  std::vector<Placement> placements;  // by node, of who runs it where it is run by itself
  Subgraphs subgraphs;                // of nodes that are run as one
  compiler::MemoryPlan plan;          // with subgraphs
};

// Fuses, decomposes, places, offers what a plugin may fuse and plans. Throws Error where nobody in the chain serves an
// op.
CompiledProgram compile(graph::Graph program, const Backend& backend);

// The two halves of compile(). What lower() leaves is fused as far as the first of the backends wants it and all of
// them can have it, so that they may run the very same ops.
graph::Graph lower(graph::Graph program, std::span<const Backend* const> backends);
enum class FuseSubgraphs { none, allowed };  // allowed: as the backend's options say
CompiledProgram place_and_plan(graph::Graph lowered, const Backend& backend, FuseSubgraphs subgraphs);

// The plan by which a program is run node by node, without subgraphs.
compiler::MemoryPlan plan_op_by_op(const CompiledProgram& program, const Backend& backend);

}  // namespace gpunn::execution
