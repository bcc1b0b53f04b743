#include "runs/preparation.hpp"

#include <gpunn/error.hpp>
#include <gpunn/version.hpp>

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "common/text.hpp"
#include "feed/model_samples.hpp"
#include "fields/standardise.hpp"
#include "storage/model_info.hpp"

namespace gpunn::training {

namespace {

constexpr const char* kVersionKey = "gpunn_version";
constexpr const char* kModelKey = "model";
constexpr std::size_t kShownNumbers = 3;

std::string numbers(const std::vector<double>& values) {
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), kShownNumbers); ++i) {
    text += fmt::format("{}{:.4g}", i == 0 ? "" : " ", values[i]);
  }
  return text + (values.size() > kShownNumbers ? fmt::format(" ({} in all)", values.size()) : "");
}

int64_t channels_of(const Field& input) { return input.type.shape.empty() ? 0 : input.type.shape.front(); }

}  // namespace

std::string normalisation_text(const std::vector<double>& mean, const std::vector<double>& stddev) {
  if (fields::changes_nothing(mean, stddev)) return "none";
  return "mean " + numbers(mean) + ", deviation " + numbers(stddev);
}

bool is_normalised(const Field& input) { return !fields::changes_nothing(input.mean, input.stddev); }

std::map<std::string, std::string> model_metadata(const ModelInfo& model) {
  return {{kVersionKey, version()}, {kModelKey, storage::model_info_text(model)}};
}

std::optional<ModelInfo> described_model(const std::map<std::string, std::string>& metadata,
                                         const std::filesystem::path& file) {
  const auto text = metadata.find(kModelKey);
  if (!metadata.contains(kVersionKey) || text == metadata.end()) return std::nullopt;
  try {
    return storage::parse_model_info(text->second);
  } catch (const storage::ModelInfoFailure& failure) {
    throw Error(file.string() + ": the description of the model in its metadata is damaged: " + failure.what() +
                    ". Export the file again",
                ExitCode::usage);
  }
}

std::string take_preparation(const ModelInfo& from, ModelInfo& network) {
  ModelInfo taken = from;
  taken.task = network.task;
  const Field& own = network.fields.input();
  const auto other = [&](const std::string& of_weights, const std::string& of_network) {
    return fmt::format(
        "normalisation: the weights were learnt from {} and the network takes {}, so it keeps its own ({})", of_weights,
        of_network, normalisation_text(own.mean, own.stddev));
  };
  const auto count = [](const ModelInfo& model) {
    return std::to_string(model.fields.of(Role::input).size()) + " inputs";
  };
  if (count(from) != count(network)) return other(count(from), count(network));
  for (const auto& [input, learnt] : paired_inputs(network.fields, taken.fields)) {
    if (learnt == nullptr) return other("other inputs", in_quotes(input->name));
    if (channels_of(*learnt) != channels_of(*input)) {
      return other(std::to_string(channels_of(*learnt)) + " channels or features", std::to_string(channels_of(*input)));
    }
    if (learnt->type.shape == input->type.shape) continue;
    learnt->type.shape = input->type.shape;
    learnt->names = input->names;
  }
  std::string text = "normalisation: taken with the weights (" +
                     normalisation_text(from.fields.input().mean, from.fields.input().stddev) + ")";
  const bool same_outputs = from.fields.target().names.size() == network.fields.target().names.size();
  if (!same_outputs) {
    taken.fields.target() = network.fields.target();
  } else if (!from.fields.target().mean.empty()) {
    text += "; scale of the targets: " + normalisation_text(from.fields.target().mean, from.fields.target().stddev);
  }
  network = std::move(taken);
  return text;
}

std::string kept_preparation(const ModelInfo& network) {
  if (!is_normalised(network.fields.input())) return "normalisation: none; the weights say nothing of one";
  return "normalisation: the weights say nothing of one, so the network keeps its own (" +
         normalisation_text(network.fields.input().mean, network.fields.input().stddev) + ")";
}

std::string other_normalisation(const ModelInfo& weights, const std::vector<double>& mean,
                                const std::vector<double>& stddev) {
  const Field& input = weights.fields.input();
  if ((input.mean == mean && input.stddev == stddev) ||
      (fields::changes_nothing(mean, stddev) && !is_normalised(input))) {
    return "";
  }
  return "  normalisation: that of this run's data (" + normalisation_text(mean, stddev) +
         "); the weights were learnt with another (" + normalisation_text(input.mean, input.stddev) +
         "). data.mean and data.stddev set it";
}

}  // namespace gpunn::training
