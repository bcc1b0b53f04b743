// The preparation of samples travels with the weights that were learnt from them: normalisation, and scaled targets.
#pragma once

#include <gpunn/model_info.hpp>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpunn::training {

// "mean 0.131, deviation 0.308"; of many channels the first ones. "none" if it changes nothing.
std::string normalisation_text(const std::vector<double>& mean, const std::vector<double>& stddev);
bool is_normalised(const Field& input);

// What the metadata of a .safetensors file say of its model; empty if gpunn did not write them. Throws Error(usage) if
// they are damaged.
std::map<std::string, std::string> model_metadata(const ModelInfo& model);
std::optional<ModelInfo> described_model(const std::map<std::string, std::string>& metadata,
                                         const std::filesystem::path& file);

// Prepares the samples of a network as those that its weights were learnt from, as far as the two have the same
// channels and outputs. Returns a sentence that says what was taken. The network keeps its task.
std::string take_preparation(const ModelInfo& from, ModelInfo& network);
// The sentence for weights that say nothing of it.
std::string kept_preparation(const ModelInfo& network);

// For a run that starts from weights and normalises by its own data: a sentence if the weights were learnt from samples
// that were normalised in another way, else empty.
std::string other_normalisation(const ModelInfo& weights, const std::vector<double>& mean,
                                const std::vector<double>& stddev);

}  // namespace gpunn::training
