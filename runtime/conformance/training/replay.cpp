#include "conformance/training/replay.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "conformance/comparison.hpp"
#include "conformance/values.hpp"
#include "training/session.hpp"

namespace gpunn::conformance {

namespace {

using training::Session;

constexpr int64_t kSingleSteps = 55;  // one at a launch; the rest several at a launch, where the backend does that

// All that a training keeps, in one order.
std::vector<storage::StoredTensor> state_of(Session& session) {
  storage::Checkpoint checkpoint;
  session.save_state(checkpoint);
  std::vector<storage::StoredTensor> tensors = std::move(checkpoint.parameters);
  for (auto& [name, states] : checkpoint.optimizer) {
    for (storage::StoredTensor& tensor : states) {
      tensor.name = name + " of " + tensor.name;
      tensors.push_back(std::move(tensor));
    }
  }
  for (storage::StoredTensor& tensor : checkpoint.state) tensors.push_back(std::move(tensor));
  const float loss = session.losses(session.step() - 1, session.step()).front();
  const auto* bytes = reinterpret_cast<const std::byte*>(&loss);
  tensors.push_back({"loss", {DType::f32, {}}, {bytes, bytes + sizeof(loss)}});
  return tensors;
}

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

// A session, or why the backend can't train this.
std::unique_ptr<Session> open(const Experiment& experiment, CheckCase& result) {
  try {
    auto session = std::make_unique<Session>(experiment);
    session->training();
    return session;
  } catch (const Error& error) {
    if (error.code() != ExitCode::missing) throw;
    result.verdict = Verdict::unsupported;
    result.detail = error.what();
    return nullptr;
  }
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
  const std::unique_ptr<Session> eager = open(experiment, result);
  if (eager == nullptr) return;
  const std::unique_ptr<Session> replayed = open(experiment, result);
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
