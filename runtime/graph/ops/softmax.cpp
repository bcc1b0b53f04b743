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

std::vector<ValueId> softmax(Composition& c) {
  const ValueId x = c.in(0), powers = c.exp(c.sub(x, c.max(x, c.last(x))));
  return {c.div(powers, c.sum(powers, c.last(x)))};
}

std::vector<ValueId> softmax_backward(Composition& c) {
  const ValueId dy = c.in(0), y = c.in(1);
  return {c.mul(y, c.sub(dy, c.sum(c.mul(dy, y), c.last(y))))};
}

std::vector<ValueId> log_softmax(Composition& c) {
  const ValueId x = c.in(0), below = c.sub(x, c.max(x, c.last(x)));
  return {c.sub(below, c.log(c.sum(c.exp(below), c.last(x))))};
}

std::vector<ValueId> log_softmax_backward(Composition& c) {
  const ValueId dy = c.in(0), y = c.in(1);
  return {c.sub(dy, c.mul(c.exp(y), c.sum(dy, c.last(y))))};
}

}  // namespace

std::vector<OpInfo> softmax_ops() {
  return {
      {.id = GPUNN_OP_SOFTMAX, .gradient = softmax_gradient, .decompose = softmax, .flops = softmax_flops},
      {.id = GPUNN_OP_SOFTMAX_BACKWARD, .decompose = softmax_backward, .flops = softmax_flops},
      {.id = GPUNN_OP_LOG_SOFTMAX, .gradient = log_softmax_gradient, .decompose = log_softmax, .flops = softmax_flops},
      {.id = GPUNN_OP_LOG_SOFTMAX_BACKWARD, .decompose = log_softmax_backward, .flops = softmax_flops},
  };
}

}  // namespace gpunn::graph
