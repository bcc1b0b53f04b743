#pragma once

#include <gpunn/ops.h>
#include <gpunn/optimizer_config.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/given_keys.hpp"
#include "config/key_builders.hpp"
#include "config/kinds.hpp"
#include "graph/expressions.hpp"

namespace gpunn::training {

// The first `elements` of the parameters decay.
struct Decay {
  float weight = 0;
  int64_t elements = 0;
};

// The inputs of an update: f32[n] each, except the learning rate f32 0-d and the step counter i64 0-d.
struct UpdateInputs {
  graph::ValueId weights, gradient, rate, step;
  std::vector<graph::ValueId> states;
  Decay decay;
};

// Appends an update in core ops and returns the new weights, then the new states.
using UpdateFormula = std::vector<graph::ValueId> (*)(graph::Expressions& e, const OptimizerConfig& config,
                                                      const UpdateInputs& in);

// A state of the parameters: a flat array as long as the gradients, or so many rows of them one behind the other. Of
// the latter a checkpoint has NAME.0, NAME.1, ...
struct OptimizerState {
  std::string name;
  int64_t rows = 0;  // 0: a flat array

  int64_t arrays() const { return rows == 0 ? 1 : rows; }
  std::string in_checkpoint(int64_t row) const { return rows == 0 ? name : name + "." + std::to_string(row); }
};

// All that is known of a kind of optimizer. A new one is a struct in gpunn/optimizer_config.hpp, a file beside this one
// that fills in a row, and a line in optimizer_rows().
struct OptimizerRow {
  config::KindOf<OptimizerConfig> kind;
  // The update is an op with attributes, or a formula.
  gpunn_op op = GPUNN_OP_SGD_UPDATE;
  graph::Attributes (*attributes)(const OptimizerConfig& config, const Decay& decay) = nullptr;
  UpdateFormula formula = nullptr;
  // "velocity", or "m" and "v", ... nullptr: there are none.
  std::vector<OptimizerState> (*states)(const OptimizerConfig& config) = nullptr;
  // nullptr: every value is fine that the keys' ranges let pass.
  void (*check)(const OptimizerConfig& config, const config::GivenKeys& given, config::Diagnostics& found) = nullptr;
  bool counts_steps = false;         // the op takes the step counter
  bool by_parameter = false;         // the op takes where in the flat arrays each parameter begins
  bool orthogonal_matrices = false;  // the op is for vectors alone, matrices take Muon's steps
};

const std::vector<OptimizerRow>& optimizer_rows();

// The section's keys, and the mistakes in their values.
std::vector<config::KeyOf<OptimizerConfig>> optimizer_keys();
void check_optimizer(const OptimizerConfig& config, const config::GivenKeys& given, config::Diagnostics& found);

template <class Kind, class... Keys>
config::KindOf<OptimizerConfig> optimizer_kind(const std::string& name, Keys... keys) {
  return config::make_kind<Kind, OptimizerConfig>(name, std::move(keys)...);
}

// Keys that several kinds have, those of a struct's base being the base's.
config::KeyOf<OptimizerConfig> weight_decay_key();

template <class Kind>
auto momentum_key() {
  return config::number("momentum", &Kind::momentum, config::from_to_below(0, 1),
                        "The share of the last step that is kept; default of muon: 0.95.");
}

template <class Kind>
auto nesterov_key() {
  return config::boolean("nesterov", &Kind::nesterov,
                         "Nesterov's look-ahead; needs a momentum. Default of muon: true.");
}

template <class Kind>
auto epsilon_key() {
  return config::number("epsilon", &Kind::epsilon, config::above_up_to(0, 1),
                        "Added to the root that the update is divided by.");
}

template <class Kind>
config::KeyOf<Kind> betas_key() {
  config::KeyOf<Kind> key;
  key.path = "betas";
  key.type = config::ValueType::numbers;
  key.help =
      "Decay of the running means of the gradient and of its square. For lion: beta1 weighs the momentum in the "
      "update, beta2 the old momentum in the new one; default there: [0.9, 0.99].";
  key.range = config::from_to_below(0, 1);
  key.count = 2;
  key.set = [](Kind& kind, const config::Value& value) {
    const auto& both = std::get<std::vector<double>>(value);
    kind.beta1 = both.at(0);
    kind.beta2 = both.at(1);
  };
  key.get = [](const Kind& kind) -> config::Value { return std::vector{kind.beta1, kind.beta2}; };
  return key;
}

}  // namespace gpunn::training
