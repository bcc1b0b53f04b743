#include "execution/compiler.hpp"

#include <gpunn/progress.hpp>

#include <algorithm>
#include <utility>

#include "compiler/decompose.hpp"
#include "compiler/fuse.hpp"
#include "compiler/layout.hpp"
#include "execution/executable.hpp"

namespace gpunn::execution {

graph::Graph lower(graph::Graph program, std::span<const Backend* const> backends) {
  const auto provider = [](const Backend& backend) -> compiler::Provider {
    return [&backend](const graph::OpSignature& signature) { return backend.place(signature).level; };
  };
  const LongWork work("planning: fusing and splitting ops");
  compiler::fuse(program, provider(*backends.front()));
  compiler::choose_layouts(program, [&](const graph::OpSignature& signature) -> compiler::Offer {
    for (const Backend* backend : backends.subspan(1)) {
      if (backend->place(signature).level < 0) return {};
    }
    const Placement placement = backends.front()->place(signature);
    return {placement.level, placement.score};
  });
  for (const Backend* backend : backends) compiler::decompose_unserved(program, provider(*backend));
  return program;
}

namespace {

compiler::MemoryPlan plan(const CompiledProgram& program, const std::vector<Subgraph>& subgraphs,
                          const Backend& backend) {
  std::vector<uint64_t> workspaces;
  workspaces.reserve(program.placements.size());
  for (const Placement& placement : program.placements) workspaces.push_back(placement.workspace_bytes);
  for (const Subgraph& subgraph : subgraphs) {
    const auto first = workspaces.begin() + static_cast<std::ptrdiff_t>(subgraph.nodes.first);
    std::fill_n(first, subgraph.nodes.count, uint64_t{0});
    *first = subgraph.workspace_bytes;
  }
  const LongWork work("planning: placing tensors in memory");
  return compiler::plan_memory(program.graph, workspaces, backend.info().alignment, ranges_of(subgraphs));
}

}  // namespace

CompiledProgram place_and_plan(graph::Graph lowered, const Backend& backend, FuseSubgraphs subgraphs) {
  CompiledProgram result;
  result.graph = std::move(lowered);
  result.placements = place_nodes(backend, result.graph);
  if (subgraphs == FuseSubgraphs::allowed && backend.options().subgraphs) {
    result.subgraphs = backend.fuse_subgraphs(result.graph, result.placements);
  }
  result.plan = plan(result, result.subgraphs.taken, backend);
  return result;
}

compiler::MemoryPlan plan_op_by_op(const CompiledProgram& program, const Backend& backend) {
  return plan(program, {}, backend);
}

CompiledProgram compile(graph::Graph program, const Backend& backend) {
  const Backend* const only = &backend;
  return place_and_plan(lower(std::move(program), {&only, 1}), backend, FuseSubgraphs::allowed);
}

}  // namespace gpunn::execution
