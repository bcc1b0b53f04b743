#include "inference/open_model.hpp"

#include <gpunn/error.hpp>

#include <string>
#include <utility>

#include "config/checked_backends.hpp"
#include "inference/engine_file/saved_engine.hpp"
#include "runs/model_info.hpp"
#include "runs/trained_model.hpp"
#include "session/open_backend.hpp"

namespace gpunn::inference {

namespace {

constexpr int64_t kMostBatch = 1 << 20;
constexpr int64_t kMostCalls = 1024;
constexpr int64_t kLastDevice = 1023, kMostThreads = 1024;  // like the keys of an experiment

void require_range(const char* option, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return;
  throw Error(std::string("ModelOptions.") + option + ": expected " + std::to_string(least) + " to " +
                  std::to_string(most) + ", found " + std::to_string(value),
              ExitCode::usage);
}

// Inputs of another size than the training's. What does not fit the model's layers is told when the program is built.
void set_image_size(ModelInfo& info, const std::vector<int64_t>& size) {
  if (size.empty()) return;
  Shape& sample = info.fields.input().type.shape;
  if (sample.size() != 3 || size.size() != 2 || size[0] < 1 || size[1] < 1) {
    throw Error(
        "ModelOptions.image_size: expected rows and columns, above 0, of a model that takes images [C, H, W]; "
        "the model takes " +
            to_string(info.fields.input().type),
        ExitCode::usage);
  }
  sample[1] = size[0];
  sample[2] = size[1];
}

}  // namespace

void check_options(const ModelOptions& options) {
  require_range("max_batch", options.max_batch, 1, kMostBatch);
  require_range("calls", options.calls, 0, kMostCalls);
  require_range("device", options.device.value_or(0), 0, kLastDevice);
  require_range("threads", options.threads.value_or(0), 0, kMostThreads);
}

Experiment with_options(Experiment experiment, const ModelOptions& options) {
  if (!options.backend.empty()) experiment.backend = options.backend;
  if (options.device) experiment.device = *options.device;
  if (options.threads) experiment.threads = *options.threads;
  if (options.precision) experiment.precision = *options.precision;
  experiment.plugins.insert(experiment.plugins.end(), options.plugins.begin(), options.plugins.end());
  experiment.backend = config::trained_backend(experiment.backend);
  return experiment;
}

OpenedModel open_model(const storage::Checkpoint& checkpoint, const std::filesystem::path& file, Experiment experiment,
                       const ModelOptions& options) {
  OpenedModel opened;
  opened.registry = std::make_unique<plugins::PluginRegistry>(experiment.plugins);
  training::require_named_plugins(experiment, *opened.registry);
  ModelInfo info = training::model_info(checkpoint, experiment, file);
  set_image_size(info, options.image_size);
  opened.backend = training::open_backend(experiment, *opened.registry, experiment.backend);
  opened.model =
      forward_model(std::move(experiment), std::move(info), opened.backend->info().alignment, options.max_batch);
  opened.model.passes = passes_without(options.without_passes);
  return opened;
}

OpenedModel open_model(const std::filesystem::path& path, const ModelOptions& options) {
  check_options(options);
  if (is_engine(path)) return open_engine(path, options);
  training::TrainedFile trained = training::read_trained(path, options.overrides, options.image_size);
  return open_model(trained.checkpoint, trained.file, with_options(std::move(trained.experiment), options), options);
}

}  // namespace gpunn::inference
