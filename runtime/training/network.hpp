#pragma once

#include <gpunn/network.hpp>

#include <string>
#include <vector>

#include "storage/checkpoint.hpp"

namespace gpunn {

class Network::Impl {
 public:
  Impl(Experiment given_experiment, ModelInfo given_info);
  Impl(Experiment given_experiment, ModelInfo given_info, storage::Checkpoint given_state);

  // Replaces the settings; the state is kept as far as possible.
  void set(Experiment given_experiment, ModelInfo given_info);
  // Where the experiment asks for an average and there is none: it begins with the present model.
  void begin_average();
  void forget_training();
  RunResult train(Dataset dataset, const RunOptions& options);
  EvalReport evaluate(Dataset dataset, TrainingListener* listener) const;
  int64_t counter(const char* name) const;
  // The tensors of a name: of a parameter that has a running average, this first and then the parameter itself.
  std::vector<storage::StoredTensor*> find(const std::string& name);
  // `state` with all that a file needs.
  storage::Checkpoint checkpoint() const;
  // The normalisation of an input that was not measured yet: none.
  ModelInfo complete_info() const;
  // Whether the weights belong to a preparation of samples: they were trained, or samples are normalised.
  bool is_prepared() const;
  std::string take_preparation(const ModelInfo& from);

  Experiment experiment;
  ModelInfo info;
  storage::Checkpoint state;  // of tensors, counters and metrics; its texts and `model` are made by checkpoint()
  std::vector<NetworkTensor> tensors;
  std::string learnt_task;  // of the weights that were read

 private:
  void describe();
  void require_samples(const Dataset& dataset) const;
  void take_settings_into(Dataset& dataset) const;
};

}  // namespace gpunn
