#pragma once

#include <gpunn/experiment.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/parser/arguments.hpp"

namespace gpunn::cli {

// The options of verbs that read an experiment. They override the file's keys.
struct ExperimentOptions {
  std::filesystem::path file;
  std::string backend;
  std::vector<std::string> settings;  // "key=value"
  std::vector<std::filesystem::path> plugins;
  std::vector<std::string> kernels;
  std::optional<int64_t> epochs, steps, threads;
  std::optional<uint64_t> seed;
  std::filesystem::path runs;

  // The given options as overrides of the file's keys.
  std::vector<Override> overrides() const;
  // Reads the file and applies the options. Throws ConfigError.
  Experiment load() const;
};

void add_experiment_options(const Verb& verb, ExperimentOptions& options);
// The same without --backend, for a verb that takes several.
void add_experiment_settings(Verb verb, ExperimentOptions& options);
void add_backend_option(Verb verb, std::string& backend);
void add_plugin_option(Verb verb, std::vector<std::filesystem::path>& plugins);
void add_kernel_option(Verb verb, std::vector<std::string>& kernels);
void add_set_option(Verb verb, std::vector<std::string>& settings);
// For an ONNX file.
void add_input_shape_option(Verb verb, std::vector<std::string>& settings);
// --set and --input-shape, of a verb that takes a trained model.
void add_model_settings(const Verb& verb, std::vector<std::string>& settings);
void add_data_option(Verb verb, std::string& data);
// --full-size and --overlap, of a verb that gives pictures to a model of the task segmentation.
void add_full_size_options(Verb verb, bool& full_size, std::optional<int64_t>& overlap, const std::string& help);

// Parses numbers of rows, as "1,8,64". Throws Error(usage) for another text.
std::vector<int64_t> batch_sizes(const std::string& text);

// Parses "key=value" texts. Throws Error with ExitCode::usage if there is no key or no '='.
std::vector<Override> parse_settings(const std::vector<std::string>& settings);
// The overrides from --data, --set and --backend of a verb that takes a trained model; empty options were not given.
std::vector<Override> model_overrides(const std::vector<std::string>& settings, const std::string& backend,
                                      const std::string& data = {});

}  // namespace gpunn::cli
