#pragma once

#include <span>
#include <vector>

#include "compiler/memory_plan.hpp"
#include "execution/backend.hpp"
#include "execution/steps/subgraph.hpp"
#include "graph/graph.hpp"

namespace gpunn::execution {

// A step program made ready for one backend.
struct CompiledProgram {
  graph::Graph graph;                 // fused and decomposed to the ops that the backend serves
  std::vector<Placement> placements;  // by node: the plugin that runs it when it is run by itself
  Subgraphs subgraphs;                // what the plugins fuse
  compiler::MemoryPlan plan;          // with fused subgraphs
};

// Steps of compile() that may be left out.
struct CompileOptions {
  bool fuse = true;                                         // ops into composite ones
  bool layouts = true;                                      // images may lie channels-last
  compiler::InPlace in_place = compiler::InPlace::allowed;  // outputs may take over the memory of inputs
};

// Fuses and decomposes ops, places each on a plugin, offers the ops to be fused as subgraphs, and plans the memory.
// Throws Error if no plugin of the chain serves an op.
CompiledProgram compile(graph::Graph program, const Backend& backend, const CompileOptions& options = {});

// The same, after timing the kernels of ops that plugins serve as alternatives, as far as their times are not known. A
// step program that is fused as a whole has nothing to time.
CompiledProgram compile_fastest(const graph::Graph& program, Backend& backend);

// Whether a plugin fuses all of it, or all but a few ops, as one subgraph.
bool is_fused_as_whole(const CompiledProgram& program);

// The two halves of compile(). lower() takes the composite ops that the first backend prefers and all backends serve,
// so that all of them can run the very same ops.
graph::Graph lower(graph::Graph program, std::span<const Backend* const> backends, const CompileOptions& options = {});
enum class FuseSubgraphs { none, allowed };  // allowed: as the backend's options say
CompiledProgram place_and_plan(graph::Graph lowered, const Backend& backend, FuseSubgraphs subgraphs,
                               const CompileOptions& options = {});

// The memory plan for running the step program op by op, without fused subgraphs.
compiler::MemoryPlan plan_op_by_op(const CompiledProgram& program, const Backend& backend);

}  // namespace gpunn::execution
