#include "cli/options/experiment_options.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "common/parse_number.hpp"

namespace gpunn::cli {

void add_backend_option(Verb verb, std::string& backend) {
  verb.add_option("--backend", backend,
                  "Backend: its name ('gpunn plugins' lists them) or its file; default: the experiment's")
      .type_name("BACKEND");
}

void add_plugin_option(Verb verb, std::vector<std::filesystem::path>& plugins) {
  verb.add_option("--plugin", plugins, "Plugin file, or folder of plugins, to search first; may be repeated")
      .repeated()
      .type_name("PATH");
}

void add_kernel_option(Verb verb, std::vector<std::string>& kernels) {
  verb.add_option("--kernel", kernels, "Kernel to use for each op that has it, as gemm:3; may be repeated")
      .repeated()
      .type_name("KERNEL");
}

void add_set_option(Verb verb, std::vector<std::string>& settings) {
  verb.add_option("--set", settings, "Change a key of the experiment, as optimizer.learning_rate=0.1; may be repeated")
      .repeated()
      .type_name("KEY=VALUE");
}

void add_model_settings(const Verb& verb, std::vector<std::string>& settings) {
  add_set_option(verb, settings);
  add_input_shape_option(verb, settings);
}

void add_input_shape_option(Verb verb, std::vector<std::string>& settings) {
  verb.add_option_callback(
          "--input-shape", [&settings](const std::string& sizes) { settings.push_back("model.input_shape=" + sizes); },
          "Sizes of the input of an ONNX file that leaves them open, as 3,224,224; without the batch, or with n for it")
      .type_name("SIZES");
}

void add_data_option(Verb verb, std::string& data) {
  verb.add_option("--data", data,
                  "Data set: its name, or an experiment that uses it; default: that of the training. An ONNX file does "
                  "not name one")
      .type_name("NAME|EXPERIMENT");
}

void add_full_size_options(Verb verb, bool& full_size, std::optional<int64_t>& overlap, const std::string& help) {
  constexpr int64_t kMostOverlap = 4096;
  verb.add_flag("--full-size", full_size, help);
  verb.add_option("--overlap", overlap,
                  "Pixels on each side of a tile that are computed and not used. Default: an eighth of the tile's side")
      .range(0, kMostOverlap)
      .type_name("N")
      .needs("--full-size");
}

void add_experiment_options(const Verb& verb, ExperimentOptions& options) {
  add_experiment_settings(verb, options);
  add_backend_option(verb, options.backend);
}

void add_experiment_settings(Verb verb, ExperimentOptions& options) {
  verb.add_option("experiment", options.file, "The experiment's YAML file").required().type_name("EXPERIMENT");
  add_set_option(verb, options.settings);
  add_plugin_option(verb, options.plugins);
  add_kernel_option(verb, options.kernels);
  verb.add_option("--seed", options.seed,
                  "Seed of the first weights, the batches and dropout; default: the experiment's")
      .type_name("N");
  verb.add_option("--epochs", options.epochs, "Passes over the training samples; default: the experiment's")
      .type_name("N");
  verb.add_option("--steps", options.steps, "Stop after so many training steps; 0: no limit; default: the experiment's")
      .type_name("N");
  verb.add_option("--threads", options.threads, "Host threads of the backend; 0: its choice, the default")
      .type_name("N");
}

std::vector<Override> parse_settings(const std::vector<std::string>& settings) {
  std::vector<Override> result;
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error("--set: expected KEY=VALUE, as in --set optimizer.learning_rate=0.1, found '" + setting + "'",
                  ExitCode::usage);
    }
    result.push_back({setting.substr(0, equals), setting.substr(equals + 1)});
  }
  return result;
}

std::vector<Override> model_overrides(const std::vector<std::string>& settings, const std::string& backend,
                                      const std::string& data) {
  std::vector<Override> result;
  if (!data.empty()) result = data_settings(data);
  std::ranges::move(parse_settings(settings), std::back_inserter(result));
  if (!backend.empty()) result.push_back({"backend", backend});
  return result;
}

std::vector<Override> ExperimentOptions::overrides() const {
  std::vector<Override> result = model_overrides(settings, backend);
  if (seed) result.push_back({"training.seed", std::to_string(*seed)});
  if (epochs) result.push_back({"training.epochs", std::to_string(*epochs)});
  if (steps) result.push_back({"training.max_steps", std::to_string(*steps)});
  if (threads) result.push_back({"training.threads", std::to_string(*threads)});
  return result;
}

namespace {

std::filesystem::path absolute_plugin(const std::filesystem::path& plugin) {
  std::error_code failure;
  std::filesystem::path path = std::filesystem::absolute(plugin, failure);
  if (failure) throw Error("--plugin " + plugin.string() + ": " + failure.message(), ExitCode::usage);
  return path;
}

}  // namespace

Experiment ExperimentOptions::load() const {
  Experiment experiment = load_experiment(file, overrides());
  if (!runs.empty()) experiment.runs = runs;
  if (!kernels.empty()) experiment.kernels = kernels;
  // Before the file's own plugins, so that a plugin of the command line is found first.
  for (std::size_t i = 0; i < plugins.size(); ++i) {
    experiment.plugins.insert(experiment.plugins.begin() + static_cast<std::ptrdiff_t>(i), absolute_plugin(plugins[i]));
  }
  return experiment;
}

std::vector<int64_t> batch_sizes(const std::string& text) {
  std::vector<int64_t> sizes;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    const std::optional<int64_t> size = parse_number<int64_t>(part);
    if (!size || *size < 1) {
      throw Error("--batch: expected numbers of rows, as 1,8,64, got '" + text + "'", ExitCode::usage);
    }
    sizes.push_back(*size);
  }
  return sizes;
}

}  // namespace gpunn::cli
