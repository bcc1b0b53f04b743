#include <gpunn/training.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/files.hpp"
#include "training/evaluation_part.hpp"
#include "training/model_info.hpp"
#include "training/own_files.hpp"
#include "training/trainer.hpp"
#include "training/transfer.hpp"

namespace gpunn {

using training::require_output;
using training::RunFolder;
using training::Session;
using training::Trainer;

namespace {

// Runs `training` with a profiler where one is asked for, and writes its trace: of a training that fails as well, where
// it was told which file.
template <class F>
RunResult profiled(const Experiment& experiment, const RunOptions& options, F training) {
  if (!options.profile) return training(nullptr);
  const std::filesystem::path& file = options.profile->file;
  if (!file.empty()) require_output(file, &experiment);
  execution::Profiler profiler(*options.profile);
  RunResult result;
  try {
    result = training(&profiler);
  } catch (const Error&) {
    try {
      if (!file.empty()) profiler.write(file);
    } catch (const Error&) {  // the first error is the one to tell
    }
    throw;
  }
  result.profile = profiler.report();
  result.profile->file = file.empty() ? result.run / "trace.json" : file;
  profiler.write(result.profile->file);
  return result;
}

}  // namespace

RunResult train(const Experiment& experiment, const RunOptions& options) {
  return profiled(experiment, options, [&](execution::Profiler* profiler) {
    Dataset dataset = training::load_for(experiment.data, EvaluationPart::validation);
    const std::optional<training::Start> start = training::find_start(experiment, training::sample_shape(dataset));
    Session session = Session::open(experiment, std::move(dataset), profiler);
    if (start) {
      session.initialise_from(*start);
      if (options.listener != nullptr) options.listener->on_message(start->report.text());
    }
    Trainer trainer(session, RunFolder::create(experiment, options.run_folder), options);
    trainer.begin();
    return trainer.run();
  });
}

RunResult resume(const std::filesystem::path& run, const std::vector<Override>& overrides, const RunOptions& options) {
  const RunFolder folder = RunFolder::open(run, [&](const std::string& text) {
    if (options.listener != nullptr) options.listener->on_message(text);
  });
  const storage::Checkpoint checkpoint = storage::load_checkpoint(folder.last());
  Experiment experiment = training::experiment_of(checkpoint, folder.last(), overrides);
  if (const std::filesystem::path resolved = run / "resolved.yaml"; path_exists(resolved)) {
    const std::string expected = parse_experiment(read_text(resolved), resolved.string()).name;
    if (expected != experiment.name) {
      throw Error(folder.last().string() + ": a checkpoint of another experiment, '" + experiment.name +
                      "'; this folder is a run of '" + expected + "'",
                  ExitCode::usage);
    }
  }
  // Not "auto", which may choose another one today.
  const bool chosen = std::ranges::any_of(overrides, [](const Override& o) { return o.key == "backend"; });
  if (!chosen) experiment.backend = checkpoint.backend;
  return profiled(experiment, options, [&](execution::Profiler* profiler) {
    Dataset dataset = training::load_for(experiment.data, EvaluationPart::validation);
    training::take_target_scale(checkpoint, dataset);
    Session session = Session::open(experiment, std::move(dataset), profiler);
    Trainer trainer(session, folder, options);
    trainer.begin(checkpoint);
    return trainer.run();
  });
}

}  // namespace gpunn
