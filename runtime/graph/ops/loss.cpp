// NLL_LOSS, MSE_LOSS, SOFTMAX_CROSS_ENTROPY, SOFT_CROSS_ENTROPY and their backwards.
#include <gpunn/ops.h>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"
#include "graph/ops/row_loss.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

TensorType row_losses(int64_t rows) { return {DType::f32, {rows}}; }

Types infer_nll(const Attributes&, Inputs in) {
  require_f32(in[0], 2, "logp");
  require_labels(in[1], in[0].shape[0]);
  return {row_losses(in[0].shape[0])};
}

Types infer_nll_backward(const Attributes& attrs, Inputs in) {
  require_f32(in[0], 1, "dloss");
  require_labels(in[1], in[0].shape[0]);
  const int32_t classes = attrs.as<gpunn_classes_attrs>().classes;
  require(classes > 0, "classes " + std::to_string(classes) + " must be positive");
  return {{DType::f32, {in[0].shape[0], classes}}};
}

Types infer_cross_entropy(const Attributes&, Inputs in) {
  require_f32(in[0], 2, "x");
  require(in[0].shape[1] > 0, "x must have at least one class, is " + to_string(in[0]));
  require_labels(in[1], in[0].shape[0]);
  return {row_losses(in[0].shape[0]), in[0]};
}

Types infer_cross_entropy_backward(const Attributes&, Inputs in) {
  require_f32(in[0], 1, "dloss");
  require_f32(in[1], 2, "logp");
  require(in[0].shape[0] == in[1].shape[0],
          "dloss " + to_string(in[0]) + " and logp " + to_string(in[1]) + " must have the same rows");
  require_labels(in[2], in[1].shape[0]);
  return {in[1]};
}

Types infer_soft_cross_entropy(const Attributes&, Inputs in) {
  require_f32(in[0], 2, "x");
  require(in[0].shape[1] > 0, "x must have at least one class, is " + to_string(in[0]));
  require_same(in[0], in[1], "x", "target");
  return {row_losses(in[0].shape[0]), in[0]};
}

Types infer_soft_cross_entropy_backward(const Attributes& attrs, Inputs in) {
  const TensorType loss = infer_soft_cross_entropy(attrs, in.subspan(1)).front();
  require_same(in[0], loss, "dloss", "the loss");
  return {in[1]};
}

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
      {.id = GPUNN_OP_NLL_LOSS,
       .name = "NLL_LOSS",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_nll,
       .gradient = nll_gradient},
      {.id = GPUNN_OP_NLL_LOSS_BACKWARD,
       .name = "NLL_LOSS_BACKWARD",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_nll_backward},
      {.id = GPUNN_OP_MSE_LOSS,
       .name = "MSE_LOSS",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_row_loss,
       .gradient = mse_gradient,
       .flops = mse_flops},
      {.id = GPUNN_OP_MSE_LOSS_BACKWARD,
       .name = "MSE_LOSS_BACKWARD",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_row_loss_backward},
      {.id = GPUNN_OP_SOFTMAX_CROSS_ENTROPY,
       .name = "SOFTMAX_CROSS_ENTROPY",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_cross_entropy,
       .gradient = cross_entropy_gradient,
       .decompose = decompose_cross_entropy,
       .flops = cross_entropy_flops},
      {.id = GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD,
       .name = "SOFTMAX_CROSS_ENTROPY_BACKWARD",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_cross_entropy_backward,
       .decompose = decompose_cross_entropy_backward,
       .flops = cross_entropy_flops},
      {.id = GPUNN_OP_SOFT_CROSS_ENTROPY,
       .name = "SOFT_CROSS_ENTROPY",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_soft_cross_entropy,
       .gradient = soft_cross_entropy_gradient,
       .flops = soft_cross_entropy_flops},
      {.id = GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD,
       .name = "SOFT_CROSS_ENTROPY_BACKWARD",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_soft_cross_entropy_backward,
       .flops = soft_cross_entropy_flops},
  };
}

}  // namespace gpunn::graph
