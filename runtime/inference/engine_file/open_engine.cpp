#include <gpunn/error.hpp>
#include <gpunn/version.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/text.hpp"
#include "config/checked_backends.hpp"
#include "inference/engine_file/saved_engine.hpp"
#include "inference/open_model.hpp"
#include "runs/model_info.hpp"
#include "session/open_backend.hpp"

namespace gpunn::inference {

namespace {

// Keys of an experiment that change nothing of a program.
constexpr std::array<std::string_view, 4> kFreeKeys = {"backend", "device", "threads", "plugins"};

bool is_free(const std::string& key) {
  return std::ranges::find(kFreeKeys, key) != kFreeKeys.end() || key.starts_with("data.");
}

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& asked) {
  throw Error(file.string() + ": an engine is planned, and does not take " + asked +
                  "; export another from the model that it was made of",
              ExitCode::usage);
}

void require_as_planned(const std::filesystem::path& file, const ModelOptions& options) {
  std::string asked;
  for (const Override& one : options.overrides) {
    if (!is_free(one.key)) asked = in_quotes(one.key);
  }
  if (!options.without_passes.empty()) asked = "other passes";
  if (!options.image_size.empty()) asked = "another size of images";
  if (!asked.empty()) refuse(file, asked);
}

std::string plugins_text(const std::vector<EnginePlugin>& plugins) {
  std::vector<std::string> names;
  for (const EnginePlugin& plugin : plugins) names.push_back(plugin.name + " " + plugin.version);
  return join(names, ", ");
}

}  // namespace

EngineTarget target_of(const execution::Backend& backend) {
  EngineTarget target;
  target.gpunn = version();
  target.abi_major = GPUNN_ABI_MAJOR;
  target.abi_minor = GPUNN_ABI_MINOR;
  const std::vector<std::string> names = backend.chain(), versions = backend.versions();
  for (std::size_t i = 0; i < names.size(); ++i) target.plugins.push_back({names[i], versions[i]});
  const gpunn_device_info& info = backend.info();
  target.device = info.name;
  target.driver = info.driver;
  target.compute_units = info.compute_units;
  target.alignment = static_cast<int64_t>(info.alignment);
  return target;
}

std::string differences(const EngineTarget& here, const EngineTarget& planned) {
  std::vector<std::string> texts;
  const auto compare = [&](const std::string& what, const std::string& mine, const std::string& theirs) {
    if (mine != theirs) texts.push_back(what + " " + theirs + ", here it is " + mine);
  };
  const auto abi = [](const EngineTarget& one) {
    return std::to_string(one.abi_major) + "." + std::to_string(one.abi_minor);
  };
  compare("gpunn", here.gpunn, planned.gpunn);
  compare("the plugin contract", abi(here), abi(planned));
  compare("the backend", plugins_text(here.plugins), plugins_text(planned.plugins));
  compare("the device", in_quotes(here.device), in_quotes(planned.device));
  compare("the driver", in_quotes(here.driver), in_quotes(planned.driver));
  compare("compute units:", std::to_string(here.compute_units), std::to_string(planned.compute_units));
  compare("an alignment of", std::to_string(here.alignment), std::to_string(planned.alignment));
  std::string text;
  for (const std::string& one : texts) text += "\n  " + one;
  return text;
}

void require_planned(const ForwardModel& model, int64_t rows) {
  if (model.saved == nullptr || rows <= model.max_batch) return;
  throw Error("the engine is planned for at most " + std::to_string(model.max_batch) + " rows, found " +
                  std::to_string(rows) + "; export one with --batch " + std::to_string(rows),
              ExitCode::usage);
}

OpenedModel open_engine(const std::filesystem::path& file, const ModelOptions& options) {
  require_as_planned(file, options);
  auto engine = std::make_shared<SavedEngine>(load_engine(file));
  storage::Checkpoint checkpoint;
  checkpoint.experiment = engine->experiment;
  checkpoint.model = engine->info;
  Experiment experiment = training::experiment_of(checkpoint, file, options.overrides);
  const Precision precision = experiment.precision;
  experiment = with_options(std::move(experiment), options);
  if (experiment.precision != precision) refuse(file, "another precision");
  OpenedModel opened;
  opened.registry = std::make_unique<plugins::PluginRegistry>(experiment.plugins);
  training::require_named_plugins(experiment, *opened.registry);
  opened.backend = training::open_backend(experiment, *opened.registry, experiment.backend);
  const std::string apart = differences(target_of(*opened.backend), engine->target);
  if (!apart.empty()) {
    throw Error(file.string() + ": this engine was planned for something else; export it here:" + apart,
                ExitCode::usage);
  }
  try {
    opened.model =
        forward_model(std::move(experiment), engine->info, opened.backend->info().alignment, engine->max_batch());
    require_runnable(*engine, opened.model, *opened.backend);
  } catch (const Error& error) {
    throw Error(file.string() + ": not a sound engine: " + error.what() + "; write it anew with 'gpunn export'",
                error.code());
  }
  opened.weights = std::move(engine->weights);
  opened.model.saved = std::move(engine);
  return opened;
}

}  // namespace gpunn::inference
