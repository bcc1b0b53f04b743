// NLL_LOSS, MSE_LOSS, SOFTMAX_CROSS_ENTROPY, SOFT_CROSS_ENTROPY and their backwards.
#include <gpunn/ops.h>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

Attributes classes(int64_t count) {
  return Attributes::of(gpunn_classes_attrs{.struct_size = 0, .classes = static_cast<int32_t>(count)});
}

void nll_gradient(GradientContext& c) {
  const int64_t count = c.graph().value(c.input(0)).type.shape[1];
  c.set(0, c.add(GPUNN_OP_NLL_LOSS_BACKWARD, classes(count), {c.output_gradient(), c.input(1)}));
}

void mse_gradient(GradientContext& c) {
  if (c.wants(1)) throw Error("'" + c.node().name + "': MSE_LOSS has no gradient for its target");
  c.set(0, c.add(GPUNN_OP_MSE_LOSS_BACKWARD, {}, {c.output_gradient(), c.input(0), c.input(1)}));
}

void cross_entropy_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD, {}, {c.output_gradient(), c.output(1), c.input(1)}));
}

void soft_cross_entropy_gradient(GradientContext& c) {
  if (c.wants(1)) throw Error("'" + c.node().name + "': SOFT_CROSS_ENTROPY has no gradient for its target");
  c.set(0, c.add(GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD, {}, {c.output_gradient(), c.output(1), c.input(1)}));
}

void decompose_cross_entropy(Graph& graph, const Node& node) {
  graph.add_into(GPUNN_OP_LOG_SOFTMAX, node.name, {}, {node.inputs[0]}, {node.outputs[1]});
  graph.add_into(GPUNN_OP_NLL_LOSS, node.name, {}, {node.outputs[1], node.inputs[1]}, {node.outputs[0]});
}

void decompose_cross_entropy_backward(Graph& graph, const Node& node) {
  const int64_t count = graph.value(node.inputs[1]).type.shape[1];
  const ValueId dlogp =
      graph.add1(GPUNN_OP_NLL_LOSS_BACKWARD, node.name, classes(count), {node.inputs[0], node.inputs[2]});
  graph.add_into(GPUNN_OP_LOG_SOFTMAX_BACKWARD, node.name, {}, {dlogp, node.inputs[1]}, {node.outputs[0]});
}

double cross_entropy_flops(const OpSignature& s) { return 5.0 * static_cast<double>(s.outputs.back().elements()); }
double soft_cross_entropy_flops(const OpSignature& s) { return 7.0 * static_cast<double>(s.outputs.back().elements()); }
double mse_flops(const OpSignature& s) { return 3.0 * static_cast<double>(s.inputs[0].elements()); }

}  // namespace

std::vector<OpInfo> loss_ops() {
  return {
      {.id = GPUNN_OP_NLL_LOSS, .gradient = nll_gradient},
      {.id = GPUNN_OP_MSE_LOSS, .gradient = mse_gradient, .flops = mse_flops},
      {.id = GPUNN_OP_SOFTMAX_CROSS_ENTROPY,
       .gradient = cross_entropy_gradient,
       .decompose = decompose_cross_entropy,
       .flops = cross_entropy_flops},
      {.id = GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD,
       .decompose = decompose_cross_entropy_backward,
       .flops = cross_entropy_flops},
      {.id = GPUNN_OP_SOFT_CROSS_ENTROPY, .gradient = soft_cross_entropy_gradient, .flops = soft_cross_entropy_flops},
      {.id = GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD, .flops = soft_cross_entropy_flops},
  };
}

}  // namespace gpunn::graph
