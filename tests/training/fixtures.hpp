// Small experiments for the training tests, and folders that go away with the test.
#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/training.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include "optim/optimizer/optimizer_rows.hpp"
#include "storage/checkpoint.hpp"
#include "temporary_folder.hpp"

namespace gpunn::testing {

using Overrides = std::vector<Override>;

inline Overrides with(Overrides list, const Overrides& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

inline std::filesystem::path experiment_file(const std::string& name) {
  return std::filesystem::path(GPUNN_SOURCE_DIR) / "experiments" / (name + ".yaml");
}

// LeNet with dropout-free layers on a few hundred drawn digits: every kind of op in well under a second an epoch.
inline Experiment small_lenet(const std::filesystem::path& runs, std::vector<Override> more = {}) {
  std::vector<Override> overrides{{"data.synthetic_train", "640"},
                                  {"data.synthetic_test", "200"},
                                  {"data.batch_size", "64"},
                                  {"training.epochs", "3"},
                                  {"backend", "cpu"},
                                  {"runs", runs.string()}};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return load_experiment(experiment_file("lenet_digits"), overrides);
}

// An MLP with dropout, on the same digits.
inline Experiment small_mlp(const std::filesystem::path& runs, const std::vector<Override>& more = {}) {
  const std::string models = (std::filesystem::path(GPUNN_SOURCE_DIR) / "models").string();
  const std::string text =
      "name: small_mlp\n"
      "model: {file: " +
      models +
      "/mlp.yaml, parameters: {dropout: 0.3}}\n"
      "data: {dataset: digits, synthetic_train: 640, synthetic_test: 200, batch_size: 64}\n"
      "optimizer: {type: sgd, learning_rate: 0.05, momentum: 0.9, nesterov: true}\n"
      "training: {epochs: 3}\n"
      "backend: cpu\n"
      "runs: " +
      runs.string() + "\n";
  return parse_experiment(text, "small_mlp.yaml", more);
}

// The optimizers that update each element by itself: all but those with orthogonal steps for matrices.
inline std::vector<std::string> element_wise_optimizers() {
  std::vector<std::string> names;
  for (const training::OptimizerRow& row : training::optimizer_rows()) {
    if (!row.orthogonal_matrices) names.push_back(row.kind.name);
  }
  return names;
}

// All that a checkpoint says of the state of a training, for a comparison bit by bit.
inline std::vector<std::vector<std::byte>> state_bytes(const storage::Checkpoint& checkpoint) {
  std::vector<std::vector<std::byte>> result;
  for (const auto& tensor : checkpoint.parameters) result.push_back(tensor.values);
  for (const auto& tensor : checkpoint.buffers) result.push_back(tensor.values);
  for (const auto& [name, tensors] : checkpoint.optimizer) {
    for (const auto& tensor : tensors) result.push_back(tensor.values);
  }
  for (const auto& tensor : checkpoint.state) result.push_back(tensor.values);
  return result;
}

inline bool same_state(const std::filesystem::path& a, const std::filesystem::path& b) {
  const storage::Checkpoint x = storage::load_checkpoint(a), y = storage::load_checkpoint(b);
  return x.counters == y.counters && x.metrics == y.metrics && state_bytes(x) == state_bytes(y);
}

}  // namespace gpunn::testing
