#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/model_info.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nn/model.hpp"
#include "storage/checkpoint.hpp"

namespace gpunn::training {

// Tensors that a training may start from, under the names of this model.
struct StartingTensors {
  std::string source;  // the file
  std::map<std::string, storage::StoredTensor> tensors;
  std::optional<ModelInfo> model = {};  // how the samples of these weights are prepared; empty: the file does not say
};

// Reads `init_from`: a checkpoint, a run folder (best.h5, else last.h5), a .safetensors file or an .onnx file, whose
// names go through the table of `init_from.names`. `input_shape` has the sizes that an .onnx file leaves open. Throws
// Error if it can't be read, with the conversion of PyTorch's files, and if two tensors get one name.
StartingTensors read_starting_tensors(const InitFromConfig& config, const std::vector<int64_t>& input_shape = {});

// The tensors of a model that were found, and why the others were not.
struct TransferReport {
  std::string source;
  std::vector<std::string> taken;
  std::vector<std::string> kept;    // "output.weight f32[10, 512] (there f32[1000, 512])"
  std::vector<std::string> unused;  // names in the file that the model does not have
  std::string text() const;         // some lines for the user
};

// The start of a training: found and compared with the model before a device is used.
struct Start {
  StartingTensors stored;
  TransferReport report;
  // The stored tensor for one of the model's, equal in name and shape, or null.
  const storage::StoredTensor* find(const std::string& name, const Shape& shape) const;
};

// Reads `init_from` and looks up the tensors of a model for these samples. Empty if the experiment has no
// `init_from`. Throws Error(usage) if no tensor is found, and what read_starting_tensors() throws.
std::optional<Start> find_start(const Experiment& experiment, const nn::SampleTypes& samples);

}  // namespace gpunn::training
