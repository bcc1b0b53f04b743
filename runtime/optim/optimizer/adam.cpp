// Kingma and Ba, 2015; adamw: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019.
#include <type_traits>
#include <utility>

#include "optim/optimizer/adam_update.hpp"
#include "optim/optimizer/optimizer_rows.hpp"

namespace gpunn::training {

namespace {

template <class Kind>
graph::Attributes adam_attributes(const OptimizerConfig& config, const Decay& decay) {
  return adam_update(std::get<Kind>(config.kind), std::is_same_v<Kind, AdamW>, decay);
}

template <class Kind>
OptimizerRow adam_row(std::string name) {
  return {.kind = optimizer_kind<Kind>(std::move(name), weight_decay_key(), betas_key<Kind>(), epsilon_key<Kind>()),
          .op = GPUNN_OP_ADAM_UPDATE,
          .attributes = adam_attributes<Kind>,
          .states = adam_states,
          .counts_steps = true};
}

}  // namespace

std::vector<OptimizerState> adam_states(const OptimizerConfig& /*config*/) { return {{"m"}, {"v"}}; }

OptimizerRow adam() { return adam_row<Adam>("adam"); }
OptimizerRow adamw() { return adam_row<AdamW>("adamw"); }

}  // namespace gpunn::training
