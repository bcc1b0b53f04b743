// The section `optimizer` of an experiment.
#pragma once

#include <gpunn/parameter_group.hpp>

#include <cstdint>
#include <variant>
#include <vector>

namespace gpunn {

// `optimizer.type: sgd`
struct Sgd {
  double momentum = 0;
  bool nesterov = false;
};

// `optimizer.type: adam`
struct Adam {
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
};

// `optimizer.type: adamw`
struct AdamW : Adam {};
// `optimizer.type: radam`
struct RAdam : Adam {};

// `optimizer.type: rmsprop`
struct RmsProp {
  double momentum = 0;
  double epsilon = 1e-8;
  double alpha = 0.99;
};

// `optimizer.type: adagrad`
struct AdaGrad {
  double epsilon = 1e-8;
};

// `optimizer.type: lion`
struct Lion {
  double beta1 = 0.9, beta2 = 0.99;
};

// `optimizer.type: lars`
struct Lars {
  double momentum = 0;
  double epsilon = 1e-8;
  double trust = 0.001;
};

// How muon scales an update by the shape of its matrix.
enum class MuonScale { original, match_rms_adamw };

// `optimizer.type: muon`
struct Muon {
  double momentum = 0.95;
  bool nesterov = true;
  double beta1 = 0.9, beta2 = 0.999;  // of AdamW, for parameters that are not matrices
  double epsilon = 1e-8;
  MuonScale scale = MuonScale::original;
};

// `optimizer.type: lbfgs`
struct Lbfgs {
  int64_t history = 10;  // number of stored pairs of a step and its change of the gradient
};

// The section `optimizer` of an experiment.
struct OptimizerConfig {
  std::variant<Sgd, Adam, AdamW, RAdam, RmsProp, AdaGrad, Lion, Lars, Muon, Lbfgs> kind;
  double learning_rate = 0.01;
  double weight_decay = 0;  // on weights only: biases never decay
  // Changes to the gradients before the update, in this order; 0: none.
  double l1 = 0;          // L1 penalty on the parameters that decay
  double clip_value = 0;  // bound of each element
  double clip_norm = 0;   // bound of the norm of all gradients
  std::vector<ParameterGroup> groups;
};

}  // namespace gpunn
