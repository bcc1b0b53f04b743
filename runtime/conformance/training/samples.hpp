#pragma once

#include <gpunn/check.hpp>
#include <gpunn/experiment.hpp>

#include <string>
#include <vector>

namespace gpunn::conformance {

// Small trainings on digits that are drawn on the spot: they need no file, and take seconds.
struct SampleTraining {
  std::string name;  // "CNN"
  std::string what;  // for the user
  std::string yaml;
  bool smooth = false;  // no maximum is chosen: what is off by rounding stays so
};

// Each optimizer, dropout, a learning rate that changes at each step: for captured graphs.
std::vector<SampleTraining> graph_trainings();
// A convolutional network and a multilayer perceptron that become good at it: for the loss curves.
std::vector<SampleTraining> curve_trainings();

// What a plugin may run as one: multilayer perceptrons and LeNet's shape in several sizes, batches and optimizers.
struct FusedTraining {
  SampleTraining sample;
  bool adaptive = false;  // the optimizer divides by the gradients' size, so that a tiny one may turn its sign
  bool rare = false;      // it is no shame to subgraph none of it
};
std::vector<FusedTraining> fused_trainings();

// On the backend that the options are about, or another one.
Experiment experiment_of(const SampleTraining& sample, const CheckOptions& options, const std::string& backend);

}  // namespace gpunn::conformance
