#include "execution/steps/compiler.hpp"

#include <gpunn/progress.hpp>

#include <algorithm>
#include <utility>

#include "compiler/decompose.hpp"
#include "compiler/fuse.hpp"
#include "compiler/layout.hpp"
#include "compiler/widen_near_use.hpp"
#include "execution/measurement/kernel_times.hpp"
#include "execution/steps/executable.hpp"

namespace gpunn::execution {

graph::Graph lower(graph::Graph program, std::span<const Backend* const> backends, const CompileOptions& options) {
  const auto provider = [](const Backend& backend) -> compiler::Provider {
    return [&backend](const graph::OpSignature& signature) { return backend.place(signature).rank; };
  };
  const LongWork work("planning: fusing and splitting ops");
  if (options.fuse) {
    compiler::fuse(program, provider(*backends.front()),
                   options.layouts ? compiler::ImageLayouts::chosen_later : compiler::ImageLayouts::packed);
  }
  const compiler::Offers offers = [&](const graph::OpSignature& signature) -> compiler::Offer {
    for (const Backend* backend : backends.subspan(1)) {
      if (backend->place(signature).level < 0) return {};
    }
    const Placement placement = backends.front()->place(signature);
    return {placement.rank, placement.score, placement.seconds};
  };
  if (options.layouts) compiler::choose_layouts(program, offers);
  for (const Backend* backend : backends) compiler::decompose_unserved(program, provider(*backend));
  compiler::widen_near_use(program);
  return program;
}

namespace {

compiler::MemoryPlan plan(const CompiledProgram& program, const std::vector<Subgraph>& subgraphs,
                          const Backend& backend, compiler::InPlace in_place = compiler::InPlace::allowed) {
  std::vector<uint64_t> workspaces;
  workspaces.reserve(program.placements.size());
  for (const Placement& placement : program.placements) workspaces.push_back(placement.workspace_bytes);
  for (const Subgraph& subgraph : subgraphs) {
    const auto first = workspaces.begin() + static_cast<std::ptrdiff_t>(subgraph.nodes.first);
    std::fill_n(first, subgraph.nodes.count, uint64_t{0});
    *first = subgraph.workspace_bytes;
  }
  const LongWork work("planning: placing tensors in memory");
  return compiler::plan_memory(program.graph, workspaces, backend.info().alignment, ranges_of(subgraphs), in_place);
}

}  // namespace

CompiledProgram place_and_plan(graph::Graph lowered, const Backend& backend, FuseSubgraphs subgraphs,
                               const CompileOptions& options) {
  CompiledProgram result;
  result.graph = std::move(lowered);
  result.placements = place_nodes(backend, result.graph);
  if (subgraphs == FuseSubgraphs::allowed && backend.options().subgraphs) {
    result.subgraphs = backend.fuse_subgraphs(result.graph, result.placements);
  }
  result.plan = plan(result, result.subgraphs.taken, backend, options.in_place);
  return result;
}

compiler::MemoryPlan plan_op_by_op(const CompiledProgram& program, const Backend& backend) {
  return plan(program, {}, backend);
}

CompiledProgram compile(graph::Graph program, const Backend& backend, const CompileOptions& options) {
  const Backend* const only = &backend;
  return place_and_plan(lower(std::move(program), {&only, 1}, options), backend, FuseSubgraphs::allowed, options);
}

namespace {

// Whether an op has alternatives and is run by itself.
bool has_choices(const CompiledProgram& program, const Backend& backend) {
  std::vector<bool> fused(program.graph.nodes().size());
  for (const Subgraph& subgraph : program.subgraphs.taken) {
    std::fill_n(fused.begin() + static_cast<std::ptrdiff_t>(subgraph.nodes.first), subgraph.nodes.count, true);
  }
  for (std::size_t n = 0; n < fused.size(); ++n) {
    if (!fused[n] && backend.alternatives(program.graph.signature(program.graph.nodes()[n])).size() > 1) return true;
  }
  return false;
}

}  // namespace

bool is_fused_as_whole(const CompiledProgram& program) {
  return std::ranges::any_of(program.subgraphs.taken, [&](const Subgraph& subgraph) {
    return subgraph.nodes.count * 4 >= program.graph.nodes().size() * 3;
  });
}

CompiledProgram compile_fastest(const graph::Graph& program, Backend& backend) {
  CompiledProgram result = compile(program, backend);
  // The choice of a kernel may lead to ops, in another layout or dtype, that were not asked about before.
  constexpr int kMostRounds = 4;
  for (int round = 0; round < kMostRounds; ++round) {
    if (backend.kernel_times() == nullptr || !has_choices(result, backend) || !measure_alternatives(backend)) break;
    result = compile(program, backend);
  }
  return result;
}

}  // namespace gpunn::execution
