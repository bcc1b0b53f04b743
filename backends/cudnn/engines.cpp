#include "engines.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <charconv>
#include <set>

#include "common/requirements.hpp"
#include "cudnn_check.hpp"

namespace gpunn::cudnn {
namespace {

using backends::Refusal;

// Why an engine may not be taken; empty where it may.
std::string objection(const Descriptor& engine, const EngineRules& rules) {
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  const int64_t note_count =
      engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
  for (int64_t i = 0; i < note_count; ++i) {
    switch (notes[i]) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        if (!rules.tensor_cores) return "rounds products to TF32";
        break;
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        return "computes in less than f32";
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        // Left out even where the experiment does not ask for it: what the query promises holds for whatever is chosen.
        return "is not deterministic";
      case CUDNN_NUMERICAL_NOTE_FFT:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        // Their errors grow with the largest number of a tile and not with the terms of the sum.
        return "transforms its input, and errs by more than a sum of products may";
      default:
        break;
    }
  }
  cudnnBackendBehaviorNote_t behaviors[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
  const int64_t behavior_count =
      engine.get(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, behaviors);
  for (int64_t i = 0; i < behavior_count; ++i) {
    if (behaviors[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) return "is compiled at run time, which takes seconds";
  }
  return "";
}

Descriptor engine_of(const Descriptor& configuration) {
  std::vector<Descriptor> engines =
      configuration.get_descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  if (engines.empty()) throw plugin::Failure(GPUNN_INTERNAL, "cuDNN gave a configuration without an engine");
  return std::move(engines.front());
}

std::string name_of(const Descriptor& configuration, const Descriptor& engine) {
  std::string name = "e" + std::to_string(engine.get_integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  for (const Descriptor& choice : configuration.get_descriptors(
           CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS)) {
    cudnnBackendKnobType_t knob = CUDNN_KNOB_TYPE_COUNTS;
    choice.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &knob);
    name += " " + std::to_string(knob) + "=" + std::to_string(choice.get_integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  return name;
}

ExecutionPlan make_plan(const Target& target, const Descriptor& configuration, std::string name) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target.handle != nullptr) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  } else {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
  }
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  plan.finalize();
  const int64_t bytes = plan.get_integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  return {std::move(name), std::move(plan), static_cast<uint64_t>(std::max<int64_t>(bytes, 0))};
}

std::vector<Descriptor> configurations(const Target& target, const OperationGraph& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target.handle == nullptr) heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  heuristic.finalize();
  const int64_t count = heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  return heuristic.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count);
}

// A knob or an engine, and what follows in the text.
int64_t parsed_number(const char*& at, const char* end) {
  int64_t value = 0;
  const auto [next, error] = std::from_chars(at, end, value);
  if (error != std::errc{}) throw Refusal("not an engine of cuDNN");
  at = next;
  return value;
}

void expect(char c, const char*& at, const char* end) {
  if (at == end || *at != c) throw Refusal("not an engine of cuDNN");
  ++at;
}

}  // namespace

std::vector<ExecutionPlan> execution_plans(const Target& target, const OperationGraph& graph, const EngineRules& rules,
                                           std::size_t most) {
  std::vector<ExecutionPlan> plans;
  std::set<std::string> seen;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    std::vector<Descriptor> found;
    try {
      found = configurations(target, graph, mode);
    } catch (const plugin::Failure& failure) {
      // A heuristic without an answer is no error; the next may have one.
      if (failure.status() == GPUNN_OUT_OF_MEMORY) throw;
      continue;
    }
    for (const Descriptor& configuration : found) {
      if (plans.size() == most) return plans;
      const Descriptor engine = engine_of(configuration);
      std::string name = name_of(configuration, engine);
      if (!seen.insert(name).second || !objection(engine, rules).empty()) continue;
      try {
        ExecutionPlan plan = make_plan(target, configuration, std::move(name));
        if (plan.workspace_bytes <= rules.workspace_bytes) plans.push_back(std::move(plan));
      } catch (const plugin::Failure& failure) {
        // Heuristics propose what an engine then finds it can't do.
        if (failure.status() == GPUNN_OUT_OF_MEMORY) throw;
      }
    }
  }
  return plans;
}

ExecutionPlan execution_plan(const Target& target, const OperationGraph& graph, const EngineRules& rules,
                             const std::string& name) {
  const char* at = name.data();
  const char* const end = at + name.size();
  expect('e', at, end);
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.graph);
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, parsed_number(at, end));
  if (target.handle == nullptr) engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, *target.properties);
  engine.finalize();
  if (const std::string why_not = objection(engine, rules); !why_not.empty()) throw Refusal("the engine " + why_not);

  std::vector<Descriptor> choices;
  while (at != end) {
    expect(' ', at, end);
    const auto knob = static_cast<cudnnBackendKnobType_t>(parsed_number(at, end));
    expect('=', at, end);
    Descriptor& choice = choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, knob);
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, parsed_number(at, end));
    choice.finalize();
  }
  Descriptor configuration(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!choices.empty()) configuration.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, std::span<const Descriptor>(choices));
  configuration.finalize();
  ExecutionPlan plan = make_plan(target, configuration, name);
  if (plan.workspace_bytes > rules.workspace_bytes) throw Refusal("the engine needs more memory than the limit");
  return plan;
}

}  // namespace gpunn::cudnn
