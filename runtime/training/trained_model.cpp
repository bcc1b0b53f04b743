#include "training/trained_model.hpp"

#include <utility>

#include "common/input_file.hpp"
#include "config/checked_backends.hpp"
#include "interchange/onnx/import.hpp"
#include "training/evaluation_part.hpp"
#include "training/model_info.hpp"
#include "training/onnx_checkpoint.hpp"
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

TrainedFile read_trained(const fs::path& path, const std::vector<Override>& overrides) {
  if (interchange::is_onnx(path)) return read_onnx_checkpoint(path, overrides);
  TrainedFile trained{.file = checkpoint_file(path), .checkpoint = {}, .experiment = {}};
  trained.checkpoint = storage::load_checkpoint(trained.file);
  trained.experiment = experiment_of(trained.checkpoint, trained.file, overrides);
  return trained;
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
  TrainedFile trained = read_trained(model.path, model.overrides);
  const storage::Checkpoint& checkpoint = trained.checkpoint;
  Experiment experiment = std::move(trained.experiment);
  experiment.backend = config::trained_backend(experiment.backend);
  if (!trained.names_data && experiment.data.dataset == kArrays) {
    throw Error(trained.file.string() +
                    ": an ONNX file does not tell which data set it is for; name one, as --data cifar10, or the "
                    "experiment that has it",
                ExitCode::usage);
  }
  Dataset dataset = load_for(experiment.data, EvaluationPart::test);
  // A file from elsewhere tells nothing of its classes.
  const bool is_told = checkpoint.model && (trained.names_data || !checkpoint.model->outputs.empty());
  if (is_told) require_data_of(*checkpoint.model, dataset);
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
