#include <cstdint>

#include "optim/optimizer/optimizer_rows.hpp"

namespace gpunn::training {

namespace {

graph::Attributes lbfgs_attributes(const OptimizerConfig& /*config*/, const Decay& decay) {
  return graph::Attributes::of(
      gpunn_lbfgs_attrs{.struct_size = 0, .weight_decay = decay.weight, .decayed = decay.elements});
}

std::vector<OptimizerState> lbfgs_states(const OptimizerConfig& config) {
  const int64_t pairs = std::get<Lbfgs>(config.kind).history;
  return {{"last_gradient"}, {"last_step"}, {"steps", pairs}, {"changes", pairs}};
}

}  // namespace

OptimizerRow lbfgs() {
  return {.kind = optimizer_kind<Lbfgs>(
              "lbfgs", weight_decay_key(),
              config::integer("history", &Lbfgs::history, config::between(1, 100),
                              "How many of the last steps describe the curvature; each keeps two numbers a weight.")),
          .op = GPUNN_OP_LBFGS_UPDATE,
          .attributes = lbfgs_attributes,
          .states = lbfgs_states,
          .counts_steps = true};
}

}  // namespace gpunn::training
