#include "subgraphs/step/query.hpp"

#include <optional>
#include <utility>

#include "subgraphs/step/blocks.hpp"
#include "subgraphs/step/step.hpp"

namespace gpunn::cuda_tiled {

using plugin::ProgramDesc;
using plugin::SubgraphSupport;

StepPlanned StepPlanner::operator()(const StepMatch& match) const {
  if (limits.shared == 0) return {std::nullopt, "the GPU has no clusters of blocks"};
  StepPlanned planned = make_step_plan(match.network, limits);
  if (planned.plan && is_resident != nullptr && !is_resident(*planned.plan)) {
    return {std::nullopt, "batch norm over more images than the GPU has at once"};
  }
  return planned;
}

SubgraphSupport query_step(const StepPlanner& plan_of, int world, const ProgramDesc& desc, std::size_t first,
                           std::size_t limit) {
  StepMatch match = match_step(desc, first, limit, world);
  if (match.ops.empty()) return SubgraphSupport::no(match.reason);
  StepPlanned planned = plan_of(match);
  if (!planned.plan && match.network.world > 1) {
    match = match_step(desc, first, limit);
    if (match.ops.empty()) return SubgraphSupport::no(planned.refusal);
    planned = plan_of(match);
  }
  if (!planned.plan) return SubgraphSupport::no(planned.refusal);
  return SubgraphSupport::yes(std::move(match.ops), "fused training step", planned.plan->workspace_bytes);
}

SubgraphSupport query_step(const StepGpu& gpu, int world, const ProgramDesc& desc, std::size_t first,
                           std::size_t limit) {
  const StepPlanner planner{
      .limits = {.shared = gpu.shared_memory - kStepStaticBytes, .multiprocessors = gpu.multiprocessors}};
  return query_step(planner, world, desc, first, limit);
}

}  // namespace gpunn::cuda_tiled
