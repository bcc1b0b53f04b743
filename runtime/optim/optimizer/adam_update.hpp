// Adam's op, which Muon too has for what are no matrices.
#pragma once

#include <string>
#include <vector>

#include "optim/optimizer/optimizer_rows.hpp"

namespace gpunn::training {

std::vector<OptimizerState> adam_states(const OptimizerConfig& config);

template <class Kind>
graph::Attributes adam_update(const Kind& kind, bool decoupled, const Decay& decay) {
  return graph::Attributes::of(gpunn_adam_attrs{.struct_size = 0,
                                                .beta1 = static_cast<float>(kind.beta1),
                                                .beta2 = static_cast<float>(kind.beta2),
                                                .epsilon = static_cast<float>(kind.epsilon),
                                                .weight_decay = decay.weight,
                                                .decoupled = decoupled,
                                                .decayed = decay.elements});
}

}  // namespace gpunn::training
