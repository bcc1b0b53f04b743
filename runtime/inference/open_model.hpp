#pragma once

#include <gpunn/model.hpp>

#include <filesystem>
#include <memory>

#include "execution/backend.hpp"
#include "inference/forward_program.hpp"
#include "inference/forward_weights.hpp"
#include "plugins/plugin.hpp"
#include "storage/checkpoint.hpp"

namespace gpunn::inference {

// A trained model and the backend that it was opened for, before any program is built, except those of an engine file.
struct OpenedModel {
  std::unique_ptr<plugins::PluginRegistry> registry;  // the plugins of the backend
  ForwardModel model;
  std::unique_ptr<execution::Backend> backend;
  Weights weights = {};  // of an engine file
};

// `file` is what errors name. Throws what Model::load does.
OpenedModel open_model(const storage::Checkpoint& checkpoint, const std::filesystem::path& file, Experiment experiment,
                       const ModelOptions& options);
// Of a run folder, a checkpoint, an ONNX file or an engine.
OpenedModel open_model(const std::filesystem::path& path, const ModelOptions& options);
// Of an engine alone; Throws Error(usage) where the options ask for another program than
// it was planned with, and Error where it was planned for another device, driver, plugin or gpunn.
OpenedModel open_engine(const std::filesystem::path& file, const ModelOptions& options);

// Throws Error(usage) where a number is out of range.
void check_options(const ModelOptions& options);
// The experiment with what the options say of its backend, device, threads, precision and plugins.
Experiment with_options(Experiment experiment, const ModelOptions& options);

}  // namespace gpunn::inference
