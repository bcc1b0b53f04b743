#include "training/divergence.hpp"

#include <algorithm>
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::training {

namespace {

// Steps up to the bad one that are looked at op by op: an overflow in the parameters shows in the loss a step later.
// With a scaled loss gradients overflow as a matter of course and never reach the parameters.
int64_t observed_steps(const Session& session) { return session.loss_scale() ? 1 : 8; }

}  // namespace

std::string find_divergence(Session& session, const storage::Checkpoint& snapshot, int64_t step) {
  session.restore_state(snapshot);
  std::string found;
  for (int64_t s = session.step(); s <= step && found.empty(); ++s) {
    if (s + observed_steps(session) <= step) {
      session.train_step();
      continue;
    }
    session.train_step_observed([&](const graph::Node& node) {
      if (!found.empty()) return;
      for (const graph::ValueId output : node.outputs) {
        const auto value = session.first_non_finite(output);
        if (!value) continue;
        found = "the first op with a non-finite result is " + std::string(ops::op_info(node.op).name) + " '" +
                node.name + "' at step " + std::to_string(s + 1) + " (" + std::to_string(*value) + ")";
        return;
      }
    });
  }
  return found.empty() ? "no op showed a non-finite result when the steps were replayed" : found;
}

}  // namespace gpunn::training
