#include "optim/optimizer/optimizer_rows.hpp"

namespace gpunn::training {

namespace {

std::vector<OptimizerState> adagrad_states(const OptimizerConfig& /*config*/) { return {{"sum"}}; }

graph::Attributes adagrad_attributes(const OptimizerConfig& config, const Decay& decay) {
  return graph::Attributes::of(
      gpunn_adagrad_attrs{.struct_size = 0,
                          .epsilon = static_cast<float>(std::get<AdaGrad>(config.kind).epsilon),
                          .weight_decay = decay.weight,
                          .reserved = 0,
                          .decayed = decay.elements});
}

}  // namespace

OptimizerRow adagrad() {
  return {.kind = optimizer_kind<AdaGrad>("adagrad", weight_decay_key(), epsilon_key<AdaGrad>()),
          .op = GPUNN_OP_ADAGRAD_UPDATE,
          .attributes = adagrad_attributes,
          .states = adagrad_states};
}

}  // namespace gpunn::training
