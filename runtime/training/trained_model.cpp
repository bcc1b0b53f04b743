#include "training/trained_model.hpp"

#include <utility>

#include "common/input_file.hpp"
#include "config/checked_backends.hpp"
#include "training/evaluation_part.hpp"
#include "training/model_info.hpp"
#include "training/programs.hpp"

namespace gpunn::training {

namespace fs = std::filesystem;

fs::path checkpoint_file(const fs::path& path) {
  if (!is_folder(path)) return path;
  for (const char* name : {"best.h5", "last.h5"}) {
    if (path_exists(path / name)) return path / name;
  }
  throw Error(path.string() + ": holds neither best.h5 nor last.h5; give a run folder that `gpunn run` made",
              ExitCode::missing);
}

const std::vector<storage::StoredTensor>& evaluated_parameters(const storage::Checkpoint& checkpoint) {
  const auto average = checkpoint.optimizer.find(variable::kAverage);
  return average != checkpoint.optimizer.end() ? average->second : checkpoint.parameters;
}

std::vector<storage::StoredTensor> model_tensors(const storage::Checkpoint& checkpoint) {
  std::vector<storage::StoredTensor> tensors = evaluated_parameters(checkpoint);
  tensors.insert(tensors.end(), checkpoint.buffers.begin(), checkpoint.buffers.end());
  return tensors;
}

std::unique_ptr<Session> open_trained(const TrainedModel& model, TrainingListener* listener) {
  const fs::path file = checkpoint_file(model.path);
  const storage::Checkpoint checkpoint = storage::load_checkpoint(file);
  Experiment experiment = experiment_of(checkpoint, file, model.overrides);
  experiment.backend = config::trained_backend(experiment.backend);
  Dataset dataset = load_for(experiment.data, EvaluationPart::test);
  if (checkpoint.model) require_data_of(*checkpoint.model, dataset);
  take_target_scale(checkpoint, dataset);
  const std::string data_notice = evaluated_data_notice(checkpoint, dataset);
  auto session = std::make_unique<Session>(Session::open(experiment, std::move(dataset)));
  session->restore_parameters(checkpoint);
  for (const std::string& notice : {session->notice(), data_notice}) {
    if (listener != nullptr && !notice.empty()) listener->on_message(notice);
  }
  return session;
}

}  // namespace gpunn::training
