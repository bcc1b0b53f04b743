#include "training/trained_model.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "config/checked_backends.hpp"
#include "training/programs.hpp"

namespace gpunn::training {

namespace fs = std::filesystem;

fs::path checkpoint_file(const fs::path& path) {
  if (!fs::is_directory(path)) return path;
  for (const char* name : {"best.h5", "last.h5"}) {
    if (fs::exists(path / name)) return path / name;
  }
  throw Error(path.string() + ": holds neither best.h5 nor last.h5; give a run folder that `gpunn run` made",
              ExitCode::missing);
}

std::vector<storage::StoredTensor> model_tensors(storage::Checkpoint checkpoint) {
  const auto average = checkpoint.optimizer.find(variable::kAverage);
  std::vector<storage::StoredTensor> tensors =
      std::move(average != checkpoint.optimizer.end() ? average->second : checkpoint.parameters);
  std::ranges::move(checkpoint.buffers, std::back_inserter(tensors));
  return tensors;
}

std::unique_ptr<Session> open_trained(const TrainedModel& model, TrainingListener* listener) {
  const fs::path file = checkpoint_file(model.path);
  const storage::Checkpoint checkpoint = storage::load_checkpoint(file);
  Experiment experiment = parse_experiment(checkpoint.experiment, file.string() + ":experiment", model.overrides);
  experiment.backend = config::trained_backend(experiment.backend);
  auto session = std::make_unique<Session>(Session::open(experiment, nullptr, EvaluationPart::test));
  session->restore_parameters(checkpoint);
  const std::string notice = session->notice();
  if (listener != nullptr && !notice.empty()) listener->on_message(notice);
  return session;
}

}  // namespace gpunn::training
