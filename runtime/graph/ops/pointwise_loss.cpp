// BCE_LOGITS_LOSS, HUBER_LOSS and their backwards: means over a row of a function of each element and its target.
#include <gpunn/ops.h>

#include <sstream>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

template <int32_t backward>
void gradient(GradientContext& c) {
  if (c.wants(1)) throw Error("'" + c.node().name + "': a loss has no gradient for its target");
  c.set(0, c.add(backward, c.node().attrs, {c.output_gradient(), c.input(0), c.input(1)}));
}

double bce_flops(const OpSignature& s) { return 6.0 * static_cast<double>(s.inputs.back().elements()); }
double huber_flops(const OpSignature& s) { return 4.0 * static_cast<double>(s.inputs.back().elements()); }

std::string describe_huber(const Attributes& attrs) {
  std::ostringstream text;
  text << "delta " << attrs.as<gpunn_huber_attrs>().delta;
  return text.str();
}

}  // namespace

std::vector<OpInfo> pointwise_loss_ops() {
  return {
      {.id = GPUNN_OP_BCE_LOGITS_LOSS, .gradient = gradient<GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD>, .flops = bce_flops},
      {.id = GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD, .flops = bce_flops},
      {.id = GPUNN_OP_HUBER_LOSS,
       .gradient = gradient<GPUNN_OP_HUBER_LOSS_BACKWARD>,
       .flops = huber_flops,
       .describe = describe_huber},
      {.id = GPUNN_OP_HUBER_LOSS_BACKWARD, .flops = huber_flops, .describe = describe_huber},
  };
}

}  // namespace gpunn::graph
