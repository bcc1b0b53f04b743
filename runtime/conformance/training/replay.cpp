#include "conformance/training/replay.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "conformance/training/kept_state.hpp"
#include "ops/comparison.hpp"
#include "ops/values.hpp"

namespace gpunn::conformance {

using ops::decode;
using ops::index_text;

namespace {

using training::Session;

constexpr int64_t kSingleSteps = 55;  // one at a launch; the rest several at a launch, where the backend does that

// Empty: the two trainings are in the same state.
std::string departure(Session& eager, Session& replayed) {
  if (eager.step() != replayed.step()) {
    return "the step counter is " + std::to_string(eager.step()) + " op by op and " + std::to_string(replayed.step()) +
           " by replay";
  }
  const auto expected = state_of(eager), found = state_of(replayed);
  std::string first;
  std::size_t different = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto [a, b] = std::ranges::mismatch(expected[i].values, found[i].values);
    if (a == expected[i].values.end()) continue;
    if (++different > 1) continue;
    const TensorType& type = expected[i].type;
    const auto element = static_cast<std::size_t>(a - expected[i].values.begin()) / size_of(type.dtype);
    char text[96];
    std::snprintf(text, sizeof(text), " is %.9g op by op and %.9g by replay",
                  decode(type, expected[i].values).values[element], decode(type, found[i].values).values[element]);
    first = "'" + expected[i].name + "'" + index_text(type.shape, element) + text;
  }
  if (different == 0) return "";
  return first + "; " + std::to_string(different) + " of " + std::to_string(expected.size()) +
         " tensors of the training's state differ";
}

}  // namespace

void run_replay(const SampleTraining& sample, Workbench& bench, CheckCase& result) {
  if (!bench.backend().can_capture()) {
    result.verdict = Verdict::unsupported;
    result.optional = true;
    result.detail = "'" + bench.backend().chain().back() + "' captures no graphs";
    return;
  }
  Experiment experiment = experiment_of(sample, bench.options(), bench.options().backend);
  experiment.deterministic = true;  // or equal bits could not be asked for
  experiment.subgraphs = false;     // likewise: the suite "subgraphs" checks fused subgraphs
  const std::unique_ptr<Session> eager = open_training(experiment, result);
  if (eager == nullptr) return;
  const std::unique_ptr<Session> replayed = open_training(experiment, result);
  const auto compare_after = [&](int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) eager->train_step_observed([](const graph::Node&) {});
    replayed->train_steps(steps);
    const std::string problem = departure(*eager, *replayed);
    if (!problem.empty()) {
      throw Error("after step " + std::to_string(eager->step()) +
                  (steps > 1 ? ", the last of " + std::to_string(steps) + " launched together" : "") + ", " + problem);
    }
  };
  for (int64_t i = 0; i < kSingleSteps; ++i) compare_after(1);

  const execution::Executable& executable = replayed->training_executable();
  if (!executable.captured()) {
    result.verdict = Verdict::unsupported;
    // On the host an overlay's work is out of its base's reach; elsewhere a step must be capturable.
    result.optional = std::string(bench.backend().info().memory_domain) == "host";
    result.detail = "the step is not captured: " + executable.eager_reason();
    return;
  }
  compare_after(replayed->total_steps() - kSingleSteps);
  result.detail = std::to_string(replayed->total_steps()) + " steps, up to " +
                  std::to_string(executable.runs_per_launch()) + " a launch";
}

}  // namespace gpunn::conformance
