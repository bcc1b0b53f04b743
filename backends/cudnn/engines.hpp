// Lists the engines that cuDNN offers for an operation graph, and makes execution plans from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convolution_graph.hpp"
#include "descriptor.hpp"

namespace gpunn::cudnn {

// Rules for the engines that may be used.
struct EngineRules {
  bool tensor_cores = false;  // products of f32 numbers rounded to TF32
  uint64_t workspace_bytes = 0;
};

// An engine with its knobs set, ready to run.
struct ExecutionPlan {
  std::string name;  // "e28 2=4 3=0": engine 28, knob 2 at 4 and knob 3 at 0
  Descriptor plan;
  uint64_t workspace_bytes = 0;
};

// The first `most` plans that obey the rules, in the order of cuDNN's heuristics. The list may be empty.
std::vector<ExecutionPlan> execution_plans(const Target& target, const OperationGraph& graph, const EngineRules& rules,
                                           std::size_t most);

// The plan of that name. Throws Refusal or Failure if cuDNN has no such engine or the engine breaks the rules.
ExecutionPlan execution_plan(const Target& target, const OperationGraph& graph, const EngineRules& rules,
                             const std::string& name);

}  // namespace gpunn::cudnn
