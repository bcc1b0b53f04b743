#include "execution/compiler.hpp"

#include <utility>

#include "execution/executable.hpp"
#include "graph/fusion.hpp"

namespace gpunn::execution {

graph::Graph lower(graph::Graph program, std::span<const Backend* const> backends) {
  const auto provider = [](const Backend& backend) -> graph::Provider {
    return [&backend](const graph::OpSignature& signature) { return backend.place(signature).level; };
  };
  graph::fuse(program, provider(*backends.front()));
  for (const Backend* backend : backends) graph::decompose_unserved(program, provider(*backend));
  return program;
}

CompiledProgram place_and_plan(graph::Graph lowered, const Backend& backend) {
  CompiledProgram result;
  result.placements = place_nodes(backend, lowered);
  std::vector<uint64_t> workspaces;
  workspaces.reserve(result.placements.size());
  for (const Placement& placement : result.placements) workspaces.push_back(placement.workspace_bytes);
  result.plan = graph::plan_memory(lowered, workspaces, backend.info().alignment);
  result.graph = std::move(lowered);
  return result;
}

CompiledProgram compile(graph::Graph program, const Backend& backend) {
  const Backend* const only = &backend;
  return place_and_plan(lower(std::move(program), {&only, 1}), backend);
}

}  // namespace gpunn::execution
