// SOFTMAX, LOG_SOFTMAX and their backwards.
#include <gpunn/ops.h>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

void softmax_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_SOFTMAX_BACKWARD, {}, {c.output_gradient(), c.output(0)}));
}

void log_softmax_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_LOG_SOFTMAX_BACKWARD, {}, {c.output_gradient(), c.output(0)}));
}

// Maximum, difference, exponential, sum and quotient or difference: five operations an element.
double softmax_flops(const OpSignature& s) { return 5.0 * static_cast<double>(s.outputs[0].elements()); }

}  // namespace

std::vector<OpInfo> softmax_ops() {
  return {
      {.id = GPUNN_OP_SOFTMAX, .gradient = softmax_gradient, .flops = softmax_flops},
      {.id = GPUNN_OP_SOFTMAX_BACKWARD, .flops = softmax_flops},
      {.id = GPUNN_OP_LOG_SOFTMAX, .gradient = log_softmax_gradient, .flops = softmax_flops},
      {.id = GPUNN_OP_LOG_SOFTMAX_BACKWARD, .flops = softmax_flops},
  };
}

}  // namespace gpunn::graph
