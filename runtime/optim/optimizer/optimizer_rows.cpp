#include "optim/optimizer/optimizer_rows.hpp"

namespace gpunn::training {

namespace {

using O = OptimizerConfig;

constexpr double kLargestBound = 1e6;

}  // namespace

// A file each.
OptimizerRow sgd();
OptimizerRow adam();
OptimizerRow adamw();
OptimizerRow radam();
OptimizerRow rmsprop();
OptimizerRow adagrad();
OptimizerRow lion();
OptimizerRow lars();
OptimizerRow muon();
OptimizerRow lbfgs();

const std::vector<OptimizerRow>& optimizer_rows() {
  static const std::vector<OptimizerRow> rows = {sgd(),     adam(), adamw(), radam(), rmsprop(),
                                                 adagrad(), lion(), lars(),  muon(),  lbfgs()};
  return rows;
}

config::KeyOf<OptimizerConfig> weight_decay_key() {
  return config::number("weight_decay", &O::weight_decay, config::between(0, config::kLargestRate),
                        "Pulls weights, never biases, towards 0.");
}

std::vector<config::KeyOf<OptimizerConfig>> optimizer_keys() {
  using namespace config;
  const std::vector<KindOf<O>> kinds = kinds_of(optimizer_rows());
  std::vector<KeyOf<O>> keys = {
      kind_key("type", kinds, "The update rule."),
      number("learning_rate", &O::learning_rate, above_up_to(0, kLargestRate),
             "The step size that the schedule starts from."),
  };
  for (KeyOf<O>& key : keys_of_kinds(kinds)) keys.push_back(std::move(key));
  for (KeyOf<O>& key : std::vector{
           number("l1", &O::l1, between(0, kLargestRate),
                  "A penalty on the absolute values of weights, never biases; 0: none."),
           number("clip_value", &O::clip_value, between(0, kLargestBound),
                  "Bounds each element of the gradients, from minus this to this; 0: no bound."),
           number("clip_norm", &O::clip_norm, between(0, kLargestBound),
                  "Shrinks the gradients to this norm, of all together, where theirs is larger; 0: no bound."),
           optional(tie<std::vector<ParameterGroup>>("groups", ValueType::groups, &O::groups,
                                                     "Parameters that are updated in another way, see below."))}) {
    keys.push_back(std::move(key));
  }
  return keys;
}

void check_optimizer(const OptimizerConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  const OptimizerRow& row = config::row_of(optimizer_rows(), config);
  if (row.check != nullptr) row.check(config, given, found);
}

}  // namespace gpunn::training
