#include "execution/compiler.hpp"

#include "execution/executable.hpp"
#include "graph/fusion.hpp"

namespace gpunn::execution {

CompiledProgram compile(graph::Graph program, const Backend& backend) {
  const graph::Provider provider = [&](const graph::OpSignature& signature) { return backend.place(signature).level; };
  graph::fuse(program, provider);
  graph::decompose_unserved(program, provider);

  CompiledProgram result;
  result.placements = place_nodes(backend, program);
  std::vector<uint64_t> workspaces;
  workspaces.reserve(result.placements.size());
  for (const Placement& placement : result.placements) workspaces.push_back(placement.workspace_bytes);
  result.plan = graph::plan_memory(program, workspaces, backend.info().alignment);
  result.graph = std::move(program);
  return result;
}

}  // namespace gpunn::execution
