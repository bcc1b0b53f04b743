#include "inference/load_onnx.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "interchange/onnx/import.hpp"
#include "nn/model.hpp"
#include "storage/model_info.hpp"

namespace gpunn::inference {

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

OnnxModelFile load_onnx(const std::filesystem::path& file, const std::vector<Override>& overrides) {
  interchange::ImportedModel imported = interchange::import_onnx(file);
  OnnxModelFile result;
  ModelInfo info = info_of(imported, file);
  result.experiment = parse_experiment(
      "name: onnx\ntask: " + info.task + "\nmodel: {layers: [flatten]}\ndata: {dataset: arrays, batch_size: 1}\n",
      file.string(), overrides);
  result.experiment.name = file.stem().string();
  result.experiment.file = file;
  result.experiment.model = std::move(imported.model);
  if (result.experiment.data.mean.empty()) result.experiment.data.mean = info.input.mean;
  if (result.experiment.data.stddev.empty()) result.experiment.data.stddev = info.input.stddev;
  std::map<std::string, const interchange::ImportedTensor*> found;
  for (const interchange::ImportedTensor& tensor : imported.tensors) found[tensor.name] = &tensor;
  const ModelSpec& model = result.experiment.model;
  result.checkpoint.parameters = in_order(nn::model_parameters(model, imported.sample), found);
  result.checkpoint.buffers = in_order(nn::model_buffers(model, imported.sample), found);
  result.checkpoint.model = std::move(info);
  return result;
}

}  // namespace gpunn::inference
