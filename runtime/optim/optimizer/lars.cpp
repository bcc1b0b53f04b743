// You, Gitman and Ginsburg, "Large Batch Training of Convolutional Networks", 2017.
#include "optim/optimizer/optimizer_rows.hpp"

namespace gpunn::training {

namespace {

std::vector<OptimizerState> lars_states(const OptimizerConfig& /*config*/) { return {{"velocity"}}; }

graph::Attributes lars_attributes(const OptimizerConfig& config, const Decay& decay) {
  const Lars& lars = std::get<Lars>(config.kind);
  return graph::Attributes::of(gpunn_lars_attrs{.struct_size = 0,
                                                .momentum = static_cast<float>(lars.momentum),
                                                .weight_decay = decay.weight,
                                                .trust = static_cast<float>(lars.trust),
                                                .epsilon = static_cast<float>(lars.epsilon),
                                                .reserved = 0,
                                                .decayed = decay.elements});
}

}  // namespace

OptimizerRow lars() {
  using namespace config;
  return {.kind = optimizer_kind<Lars>(
              "lars", momentum_key<Lars>(), weight_decay_key(), epsilon_key<Lars>(),
              number("trust", &Lars::trust, above_up_to(0, kLargestRate),
                     "A weight's step, before the learning rate, as a share of the weight's norm.")),
          .op = GPUNN_OP_LARS_UPDATE,
          .attributes = lars_attributes,
          .states = lars_states,
          .by_parameter = true};
}

}  // namespace gpunn::training
