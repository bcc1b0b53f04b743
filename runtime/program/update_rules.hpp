#pragma once

#include <gpunn/experiment.hpp>

#include <string>
#include <vector>

#include "nn/model.hpp"

namespace gpunn::training {

// How one parameter is trained.
struct UpdateRule {
  bool frozen = false;
  bool decays = false;
  int group = -1;       // of optimizer.groups; -1: of none
  bool matrix = false;  // what Muon makes its steps for; not frozen
};

// The common settings of a group's parameters, or of those in no group.
struct GroupUpdate {
  double rate_factor = 1;
  double weight_decay = 0;  // of those that decay
};

// The rule of each parameter: that of the first group with a matching pattern; frozen parameters are in none. Throws
// Error with ExitCode::usage, with every pattern that matches nothing, and if nothing is left to train.
std::vector<UpdateRule> update_rules(const std::vector<nn::Parameter>& parameters, const Experiment& experiment);

// The batch norms whose parameters are all frozen: the layers with such buffers, by name, in the order of the layers.
// Throws Error, an ExitCode::usage, where training.freeze_statistics is set and there is none.
std::vector<std::string> frozen_norms(const Experiment& experiment, const std::vector<nn::Parameter>& parameters,
                                      const std::vector<UpdateRule>& rules, const std::vector<nn::Parameter>& buffers);

GroupUpdate group_update(const OptimizerConfig& optimizer, int group);

}  // namespace gpunn::training
