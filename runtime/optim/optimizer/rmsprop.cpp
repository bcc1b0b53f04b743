#include "optim/optimizer/optimizer_rows.hpp"

namespace gpunn::training {

namespace {

std::vector<OptimizerState> rmsprop_states(const OptimizerConfig& config) {
  if (std::get<RmsProp>(config.kind).momentum == 0) return {{"square"}};
  return {{"square"}, {"velocity"}};
}

graph::Attributes rmsprop_attributes(const OptimizerConfig& config, const Decay& decay) {
  const RmsProp& rmsprop = std::get<RmsProp>(config.kind);
  return graph::Attributes::of(gpunn_rmsprop_attrs{.struct_size = 0,
                                                   .alpha = static_cast<float>(rmsprop.alpha),
                                                   .epsilon = static_cast<float>(rmsprop.epsilon),
                                                   .momentum = static_cast<float>(rmsprop.momentum),
                                                   .weight_decay = decay.weight,
                                                   .reserved = 0,
                                                   .decayed = decay.elements});
}

}  // namespace

OptimizerRow rmsprop() {
  using namespace config;
  return {
      .kind = optimizer_kind<RmsProp>(
          "rmsprop", momentum_key<RmsProp>(), weight_decay_key(), epsilon_key<RmsProp>(),
          number("alpha", &RmsProp::alpha, from_to_below(0, 1), "Decay of the running mean of the gradient's square.")),
      .op = GPUNN_OP_RMSPROP_UPDATE,
      .attributes = rmsprop_attributes,
      .states = rmsprop_states};
}

}  // namespace gpunn::training
