#pragma once

#include <gpunn/check.hpp>
#include <gpunn/experiment.hpp>

#include <string>
#include <vector>

namespace gpunn::conformance {

// Small trainings on digits that are drawn on the spot. They need no file, and take seconds.
struct SampleTraining {
  std::string name;  // "CNN"
  std::string what;  // for the user
  std::string yaml;
  bool smooth = false;  // no maximum is chosen, so a rounding error stays small
};

// For captured graphs: each optimizer, dropout, a learning rate that changes at each step.
std::vector<SampleTraining> graph_trainings();
// For the loss curves: a convolutional network and a multilayer perceptron whose loss falls far.
std::vector<SampleTraining> curve_trainings();

// For fused subgraphs: multilayer perceptrons and LeNet's shape in several sizes, batches and optimizers.
struct FusedTraining {
  SampleTraining sample;
  bool adaptive = false;  // the optimizer divides by the gradient's size: rounding of a tiny one may flip a whole step
  bool rare = false;      // a plugin need not fuse any of it
};
std::vector<FusedTraining> fused_trainings();

// The experiment of a sample training on a backend, which need not be the one that the options are about.
Experiment experiment_of(const SampleTraining& sample, const CheckOptions& options, const std::string& backend);

}  // namespace gpunn::conformance
