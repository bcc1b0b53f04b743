// Jordan et al., 2024. ../muon_ops.cpp has the steps of matrices; here is AdamW, for all else.
#include "optim/optimizer/adam_update.hpp"
#include "optim/optimizer/optimizer_rows.hpp"

namespace gpunn::training {

namespace {

graph::Attributes muon_attributes(const OptimizerConfig& config, const Decay& decay) {
  return adam_update(std::get<Muon>(config.kind), true, decay);
}

}  // namespace

OptimizerRow muon() {
  using namespace config;
  return {.kind = optimizer_kind<Muon>(
              "muon", momentum_key<Muon>(), nesterov_key<Muon>(), weight_decay_key(), betas_key<Muon>(),
              epsilon_key<Muon>(),
              choice("scale", &Muon::scale, {"original", "match_rms_adamw"},
                     "How the learning rate is fitted to a matrix of r rows and c columns: times sqrt(max(1, r / c)), "
                     "or times 0.2 sqrt(max(r, c)), which makes the steps as large as AdamW's.")),
          .op = GPUNN_OP_ADAM_UPDATE,
          .attributes = muon_attributes,
          .states = adam_states,
          .counts_steps = true,
          .orthogonal_matrices = true};
}

}  // namespace gpunn::training
