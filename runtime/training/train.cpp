#include <gpunn/training.hpp>

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
  Session session(std::move(experiment));
  Trainer trainer(session, folder, options);
  trainer.begin(checkpoint);
  return trainer.run();
}

}  // namespace gpunn
