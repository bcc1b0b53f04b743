// SOFTMAX, LOG_SOFTMAX and their backwards.
#include <gpunn/ops.h>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

Types infer_rows(const Attributes&, Inputs in) {
  require_f32(in[0], 2, "x");
  require(in[0].shape[1] > 0, "x must have at least one class, is " + to_string(in[0]));
  return {in[0]};
}

Types infer_rows_backward(const Attributes&, Inputs in) {
  require_f32(in[0], 2, "dy");
  require_same(in[0], in[1], "dy", "y");
  return {in[0]};
}

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
      {.id = GPUNN_OP_SOFTMAX,
       .name = "SOFTMAX",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_rows,
       .gradient = softmax_gradient,
       .flops = softmax_flops},
      {.id = GPUNN_OP_SOFTMAX_BACKWARD,
       .name = "SOFTMAX_BACKWARD",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_rows_backward,
       .flops = softmax_flops},
      {.id = GPUNN_OP_LOG_SOFTMAX,
       .name = "LOG_SOFTMAX",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_rows,
       .gradient = log_softmax_gradient,
       .flops = softmax_flops},
      {.id = GPUNN_OP_LOG_SOFTMAX_BACKWARD,
       .name = "LOG_SOFTMAX_BACKWARD",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_rows_backward,
       .flops = softmax_flops},
  };
}

}  // namespace gpunn::graph
