// Whether ops of a program are a step that a GPU can run as one.
#pragma once

#include "subgraphs/step/match.hpp"
#include "subgraphs/step/plan.hpp"

namespace gpunn::cuda_tiled {

struct StepPlanner {
  StepLimits limits;                               // no shared memory: the GPU has no clusters of blocks
  bool (*is_resident)(const StepPlan&) = nullptr;  // nullptr: every plan is

  StepPlanned operator()(const StepMatch& match) const;
};

plugin::SubgraphSupport query_step(const StepPlanner& plan_of, int world, const plugin::ProgramDesc& desc,
                                   std::size_t first, std::size_t limit);

}  // namespace gpunn::cuda_tiled
