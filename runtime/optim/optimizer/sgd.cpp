#include "optim/optimizer/optimizer_rows.hpp"

namespace gpunn::training {

namespace {

std::vector<OptimizerState> sgd_states(const OptimizerConfig& config) {
  if (std::get<Sgd>(config.kind).momentum == 0) return {};
  return {{"velocity"}};
}

graph::Attributes sgd_attributes(const OptimizerConfig& config, const Decay& decay) {
  const Sgd& sgd = std::get<Sgd>(config.kind);
  return graph::Attributes::of(gpunn_sgd_attrs{.struct_size = 0,
                                               .momentum = static_cast<float>(sgd.momentum),
                                               .weight_decay = decay.weight,
                                               .nesterov = sgd.nesterov,
                                               .decayed = decay.elements});
}

void check_sgd(const OptimizerConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  const Sgd& sgd = std::get<Sgd>(config.kind);
  if (!sgd.nesterov || sgd.momentum != 0 || !given.sound("optimizer.momentum")) return;
  found.add(given.place("optimizer.nesterov"), "optimizer.nesterov needs optimizer.momentum above 0");
}

}  // namespace

OptimizerRow sgd() {
  return {.kind = optimizer_kind<Sgd>("sgd", momentum_key<Sgd>(), nesterov_key<Sgd>(), weight_decay_key()),
          .op = GPUNN_OP_SGD_UPDATE,
          .attributes = sgd_attributes,
          .states = sgd_states,
          .check = check_sgd};
}

}  // namespace gpunn::training
