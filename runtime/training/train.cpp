#include <gpunn/training.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "common/files.hpp"
#include "training/evaluation_part.hpp"
#include "training/model_info.hpp"
#include "training/profiled.hpp"
#include "training/trainer.hpp"
#include "training/transfer.hpp"

namespace gpunn {

using training::profiled;
using training::RunFolder;
using training::Session;
using training::Trainer;

namespace {

Dataset data_of(const Experiment& experiment) {
  return training::load_for(experiment.data, EvaluationPart::validation);
}

Dataset prepared(Dataset dataset, const Experiment& experiment) {
  return training::prepared_for(std::move(dataset), experiment.data, EvaluationPart::validation);
}

RunResult train_on(const Experiment& experiment, const std::function<Dataset()>& data, const RunOptions& options) {
  return profiled(experiment, options, [&](execution::Profiler* profiler) {
    Dataset dataset = data();
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

RunResult resume_on(const std::filesystem::path& run, const std::vector<Override>& overrides,
                    const std::function<Dataset(const Experiment&)>& data, const RunOptions& options) {
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
    Dataset dataset = data(experiment);
    training::take_target_scale(checkpoint, dataset);
    Session session = Session::open(experiment, std::move(dataset), profiler);
    Trainer trainer(session, folder, options);
    trainer.begin(checkpoint);
    return trainer.run();
  });
}

}  // namespace

RunResult train(const Experiment& experiment, const RunOptions& options) {
  return train_on(
      experiment, [&] { return data_of(experiment); }, options);
}

RunResult train(const Experiment& experiment, Dataset dataset, const RunOptions& options) {
  return train_on(
      experiment, [&] { return prepared(std::move(dataset), experiment); }, options);
}

RunResult resume(const std::filesystem::path& run, const std::vector<Override>& overrides, const RunOptions& options) {
  return resume_on(run, overrides, data_of, options);
}

RunResult resume(const std::filesystem::path& run, const std::vector<Override>& overrides, Dataset dataset,
                 const RunOptions& options) {
  return resume_on(
      run, overrides, [&](const Experiment& experiment) { return prepared(std::move(dataset), experiment); }, options);
}

}  // namespace gpunn
