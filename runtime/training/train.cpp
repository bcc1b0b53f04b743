#include <gpunn/training.hpp>

#include <algorithm>

#include "common/files.hpp"
#include "training/trainer.hpp"

namespace gpunn {

using training::RunFolder;
using training::Session;
using training::Trainer;

RunResult train(const Experiment& experiment, const RunOptions& options) {
  Session session(experiment);
  Trainer trainer(session, RunFolder::create(experiment, options.run_folder), options);
  trainer.begin();
  return trainer.run();
}

RunResult resume(const std::filesystem::path& run, const std::vector<Override>& overrides, const RunOptions& options) {
  const RunFolder folder = RunFolder::open(run);
  const storage::Checkpoint checkpoint = storage::load_checkpoint(folder.last());
  Experiment experiment = parse_experiment(checkpoint.experiment, folder.last().string() + ":experiment", overrides);
  if (const std::filesystem::path resolved = run / "resolved.yaml"; std::filesystem::exists(resolved)) {
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
  Session session(std::move(experiment));
  Trainer trainer(session, folder, options);
  trainer.begin(checkpoint);
  return trainer.run();
}

}  // namespace gpunn
