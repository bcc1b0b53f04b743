#include "training/onnx_checkpoint.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "interchange/onnx/import.hpp"
#include "nn/model.hpp"
#include "storage/model_info.hpp"

namespace gpunn::training {

namespace {

ModelInfo info_of(const interchange::ImportedModel& imported, const std::filesystem::path& file) {
  ModelInfo info;
  if (const auto told = imported.metadata.find("model"); told != imported.metadata.end()) {
    try {
      info = storage::parse_model_info(told->second);
    } catch (const storage::ModelInfoFailure& failure) {
      throw Error(file.string() + ": what its metadata tell of the model: " + failure.what(), ExitCode::usage);
    }
    if (info.input.sample.shape != imported.sample) {
      throw Error(file.string() + ": its metadata tell of samples of " + to_string(info.input.sample.shape) +
                      ", its graph takes " + to_string(imported.sample),
                  ExitCode::usage);
    }
    return info;
  }
  info.input.name = imported.input;
  info.input.sample = {DType::f32, imported.sample};
  const auto channels = static_cast<std::size_t>(imported.sample.front());
  info.input.mean.assign(channels, 0);
  info.input.stddev.assign(channels, 1);
  return info;
}

// The tensors that a model wants, in its order.
std::vector<storage::StoredTensor> in_order(const std::vector<nn::Parameter>& wanted,
                                            const std::map<std::string, const interchange::ImportedTensor*>& found) {
  std::vector<storage::StoredTensor> result;
  for (const nn::Parameter& one : wanted) {
    const auto tensor = found.find(one.name);
    if (tensor == found.end()) continue;  // which the comparison with the layout tells
    result.push_back(storage::stored_floats(one.name, tensor->second->shape, *tensor->second->values));
  }
  return result;
}

}  // namespace

namespace {

// Takes the sizes of the input out of the overrides; empty: there are none.
std::vector<int64_t> take_input_shape(std::vector<Override>& overrides) {
  constexpr std::string_view kKey = "model.input_shape";
  std::vector<int64_t> sizes;
  for (const Override& one : overrides) {
    if (one.key == kKey) sizes = interchange::read_input_shape(one.value);
  }
  std::erase_if(overrides, [&](const Override& one) { return one.key == kKey; });
  return sizes;
}

}  // namespace

TrainedFile read_onnx_checkpoint(const std::filesystem::path& file, std::vector<Override> overrides) {
  interchange::ImportedModel imported = interchange::import_onnx(file, {.input_shape = take_input_shape(overrides)});
  TrainedFile result{.file = file, .checkpoint = {}, .experiment = {}, .names_data = false};
  const bool tells_itself = imported.metadata.contains("model");
  ModelInfo info = info_of(imported, file);
  result.experiment = parse_experiment(
      "task: " + info.task + "\nmodel: {layers: [flatten]}\ndata: {dataset: " + kArrays + ", batch_size: 1}\n",
      file.string(), overrides);
  Experiment& experiment = result.experiment;
  experiment.file = file;
  experiment.model = std::move(imported.model);
  // The normalisation of a file from elsewhere is that of the data, which knows what it was trained with.
  if (tells_itself && experiment.data.mean.empty()) experiment.data.mean = info.input.mean;
  if (tells_itself && experiment.data.stddev.empty()) experiment.data.stddev = info.input.stddev;
  std::map<std::string, const interchange::ImportedTensor*> found;
  for (const interchange::ImportedTensor& tensor : imported.tensors) found[tensor.name] = &tensor;
  result.checkpoint.parameters = in_order(nn::model_parameters(experiment.model, imported.sample), found);
  result.checkpoint.buffers = in_order(nn::model_buffers(experiment.model, imported.sample), found);
  result.checkpoint.model = std::move(info);
  result.checkpoint.backend = experiment.backend;
  result.checkpoint.experiment = resolved_yaml(experiment);
  return result;
}

std::vector<storage::StoredTensor> onnx_tensors(const std::filesystem::path& file) {
  std::vector<storage::StoredTensor> tensors;
  for (const interchange::ImportedTensor& tensor : interchange::import_onnx(file).tensors) {
    tensors.push_back(storage::stored_floats(tensor.name, tensor.shape, *tensor.values));
  }
  return tensors;
}

}  // namespace gpunn::training
