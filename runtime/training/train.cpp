#include <gpunn/training.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "common/files.hpp"
#include "feed/evaluation_part.hpp"
#include "feed/model_samples.hpp"
#include "interchange/onnx/import.hpp"
#include "runs/model_info.hpp"
#include "runs/preparation.hpp"
#include "runs/rank_files.hpp"
#include "runs/transfer.hpp"
#include "storage/safetensors.hpp"
#include "training/profiled.hpp"
#include "training/rank_team.hpp"
#include "training/resumed_settings.hpp"
#include "training/trainer.hpp"

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

// The weights that a run begins with, in its folder: of a model from an ONNX file, which the run no longer needs then.
constexpr const char* kInitialWeights = "initial.safetensors";

bool is_from_onnx(const Experiment& experiment) {
  return interchange::is_onnx(experiment.model.file) && interchange::is_onnx(experiment.init_from.file);
}

void write_initial(const RunFolder& folder, const training::StartingTensors& stored) {
  if (folder.is_none()) return;
  storage::Safetensors content;
  content.metadata = {{"format", "pt"}, {"source", stored.source}};
  for (const auto& [name, tensor] : stored.tensors) {
    content.tensors.push_back(tensor);
    content.tensors.back().name = name;
  }
  storage::save_safetensors(folder.path() / kInitialWeights, content);
}

std::string started_text(const training::Start& start, const Session& session) {
  std::string text = start.report.text();
  if (!start.stored.model) return text;
  const Field input = training::model_info(session.experiment(), session.dataset()).fields.input();
  const std::string other = training::other_normalisation(*start.stored.model, input.mean, input.stddev);
  return other.empty() ? text : text + "\n" + other;
}

// But for the first, ranks write nothing.
RunOptions options_of_rank(RunOptions options, const distributed::Team* team) {
  if (team == nullptr || team->speaks()) return options;
  options.profile.reset();
  return options;
}

RunResult train_session(const Experiment& given, const std::function<Dataset()>& data, const RunOptions& options,
                        const std::shared_ptr<distributed::Team>& team) {
  return profiled(given, options, [&](execution::Profiler* profiler) {
    Dataset dataset = data();
    const std::optional<training::Start> start = training::find_start(given, training::model_samples(dataset));
    Experiment experiment = given;
    const bool keeps_weights = start && is_from_onnx(given);
    if (keeps_weights) experiment.init_from = {.file = kInitialWeights, .names = {}};
    Session session = Session::open(experiment, std::move(dataset), profiler, team);
    training::require_equal_ranks(session);
    if (start) {
      session.initialise_from(*start);
      if (options.listener != nullptr) options.listener->on_message(started_text(*start, session));
    }
    const bool writes = team == nullptr || team->speaks();
    RunFolder folder = writes ? RunFolder::create(experiment, options.run_folder) : RunFolder::none();
    if (keeps_weights) write_initial(folder, start->stored);
    Trainer trainer(session, std::move(folder), options);
    trainer.begin();
    return trainer.run();
  });
}

RunResult train_on(const Experiment& experiment, const std::function<Dataset()>& data, const RunOptions& options) {
  return training::with_team(options.place, options.listener, [&](const std::shared_ptr<distributed::Team>& team) {
    return train_session(experiment, data, options_of_rank(options, team.get()), team);
  });
}

RunResult resume_session(const std::filesystem::path& run, const std::vector<Override>& overrides,
                         const std::function<Dataset(const Experiment&)>& data, const RunOptions& options,
                         const std::shared_ptr<distributed::Team>& team) {
  const bool writes = team == nullptr || team->speaks();
  const RunFolder folder = writes ? RunFolder::open(run,
                                                    [&](const std::string& text) {
                                                      if (options.listener != nullptr)
                                                        options.listener->on_message(text);
                                                    })
                                  : RunFolder::none();
  const std::filesystem::path last = run / "last.h5";
  const storage::Checkpoint checkpoint =
      team == nullptr ? storage::load_checkpoint(last) : training::load_on_all_ranks(*team, last);
  Experiment experiment = training::experiment_of(checkpoint, last, overrides);
  if (writes) training::require_own_checkpoint(run, last, experiment.name);
  // A path within the folder, which may have been moved.
  if (experiment.init_from.file.filename() == kInitialWeights && path_exists(run / kInitialWeights)) {
    experiment.init_from.file = kInitialWeights;
  }
  if (options.keep_schedule) training::keep_schedule(experiment, checkpoint, last);
  if (writes && options.listener != nullptr) {
    for (const std::string& notice : training::edited_files_notices(run, checkpoint, overrides)) {
      options.listener->on_message(notice);
    }
  }
  // Not "auto", which may choose another one today.
  const bool chosen = std::ranges::any_of(overrides, [](const Override& o) { return o.key == "backend"; });
  if (!chosen) experiment.backend = checkpoint.backend;
  return profiled(experiment, options, [&](execution::Profiler* profiler) {
    Dataset dataset = data(experiment);
    training::take_scales(checkpoint, dataset);
    Session session = Session::open(experiment, std::move(dataset), profiler, team, training::origin_of(checkpoint));
    training::require_equal_ranks(session);
    Trainer trainer(session, folder, options);
    trainer.begin(checkpoint);
    return trainer.run();
  });
}

RunResult resume_on(const std::filesystem::path& run, const std::vector<Override>& overrides,
                    const std::function<Dataset(const Experiment&)>& data, const RunOptions& options) {
  return training::with_team(options.place, options.listener, [&](const std::shared_ptr<distributed::Team>& team) {
    return resume_session(run, overrides, data, options_of_rank(options, team.get()), team);
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
