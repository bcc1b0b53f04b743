// Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023.
#include "optim/optimizer/optimizer_rows.hpp"

namespace gpunn::training {

namespace {

std::vector<OptimizerState> lion_states(const OptimizerConfig& /*config*/) { return {{"m"}}; }

graph::Attributes lion_attributes(const OptimizerConfig& config, const Decay& decay) {
  const Lion& lion = std::get<Lion>(config.kind);
  return graph::Attributes::of(gpunn_lion_attrs{.struct_size = 0,
                                                .beta1 = static_cast<float>(lion.beta1),
                                                .beta2 = static_cast<float>(lion.beta2),
                                                .weight_decay = decay.weight,
                                                .decayed = decay.elements});
}

}  // namespace

OptimizerRow lion() {
  return {.kind = optimizer_kind<Lion>("lion", weight_decay_key(), betas_key<Lion>()),
          .op = GPUNN_OP_LION_UPDATE,
          .attributes = lion_attributes,
          .states = lion_states};
}

}  // namespace gpunn::training
