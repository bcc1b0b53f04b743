#include "runs/trained_model.hpp"

#include <utility>

#include "common/input_file.hpp"
#include "interchange/onnx/import.hpp"
#include "program/programs.hpp"
#include "runs/model_info.hpp"
#include "runs/onnx_checkpoint.hpp"

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

TrainedFile read_trained(const fs::path& path, const std::vector<Override>& overrides,
                         const std::vector<int64_t>& image_size) {
  if (interchange::is_onnx(path)) return read_onnx_checkpoint(path, overrides, image_size);
  TrainedFile trained{.file = checkpoint_file(path), .checkpoint = {}, .experiment = {}};
  trained.checkpoint = storage::load_checkpoint(trained.file);
  trained.experiment = experiment_of(trained.checkpoint, trained.file, overrides);
  return trained;
}

const std::vector<storage::StoredTensor>& evaluated_parameters(const storage::Checkpoint& checkpoint) {
  const auto average = checkpoint.optimizer.find(variable::kAverage);
  return average != checkpoint.optimizer.end() ? average->second : checkpoint.parameters;
}

const std::vector<storage::StoredTensor>& evaluated_buffers(const storage::Checkpoint& checkpoint) {
  const auto average = checkpoint.optimizer.find(variable::kAverageBuffers);
  return average != checkpoint.optimizer.end() ? average->second : checkpoint.buffers;
}

std::vector<storage::StoredTensor> model_tensors(const storage::Checkpoint& checkpoint) {
  std::vector<storage::StoredTensor> tensors = evaluated_parameters(checkpoint);
  const std::vector<storage::StoredTensor>& buffers = evaluated_buffers(checkpoint);
  tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  return tensors;
}

}  // namespace gpunn::training
