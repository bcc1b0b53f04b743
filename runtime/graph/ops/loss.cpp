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

std::vector<ValueId> cross_entropy(Composition& c) {
  const ValueId logp = c.op(GPUNN_OP_LOG_SOFTMAX, {c.in(0)});
  return {c.op(GPUNN_OP_NLL_LOSS, {logp, c.in(1)}), logp};
}

std::vector<ValueId> cross_entropy_backward(Composition& c) {
  const ValueId dlogp = c.op(GPUNN_OP_NLL_LOSS_BACKWARD, {c.in(0), c.in(2)}, classes(c.shape(c.in(1))[1]));
  return {c.op(GPUNN_OP_LOG_SOFTMAX_BACKWARD, {dlogp, c.in(1)})};
}

// Where a target is 0 nothing is added, whatever logp is.
std::vector<ValueId> soft_cross_entropy(Composition& c) {
  const ValueId logp = c.op(GPUNN_OP_LOG_SOFTMAX, {c.in(0)}), target = c.in(1), nothing = c.constant(0);
  const ValueId terms = c.select(c.equal(target, nothing), nothing, c.mul(target, logp));
  return {c.scaled(c.row_sum(terms), -1), logp};
}

std::vector<ValueId> soft_cross_entropy_backward(Composition& c) {
  const ValueId dloss = c.in(0), logp = c.in(1), target = c.in(2);
  const ValueId expected = c.mul(c.exp(logp), c.sum(target, c.last(target)));
  return {c.mul(c.by_row(dloss, logp), c.sub(expected, target))};
}

std::vector<ValueId> mse(Composition& c) {
  const ValueId difference = c.sub(c.in(0), c.in(1));
  return {c.row_mean(c.mul(difference, difference))};
}

std::vector<ValueId> mse_backward(Composition& c) {
  const ValueId x = c.in(1);
  const ValueId factor = c.div(c.scaled(c.by_row(c.in(0), x), 2), c.constant(c.row_size(x)));
  return {c.mul(factor, c.sub(x, c.in(2)))};
}

double cross_entropy_flops(const OpSignature& s) { return 5.0 * static_cast<double>(s.outputs.back().elements()); }
double soft_cross_entropy_flops(const OpSignature& s) { return 7.0 * static_cast<double>(s.outputs.back().elements()); }
double mse_backward_flops(const OpSignature& s) { return 3.0 * static_cast<double>(s.inputs[1].elements()); }
double mse_flops(const OpSignature& s) { return 3.0 * static_cast<double>(s.inputs[0].elements()); }

}  // namespace

std::vector<OpInfo> loss_ops() {
  return {
      {.id = GPUNN_OP_NLL_LOSS, .gradient = nll_gradient},
      {.id = GPUNN_OP_MSE_LOSS, .gradient = mse_gradient, .decompose = mse, .flops = mse_flops},
      {.id = GPUNN_OP_MSE_LOSS_BACKWARD, .decompose = mse_backward, .flops = mse_backward_flops},
      {.id = GPUNN_OP_SOFTMAX_CROSS_ENTROPY,
       .gradient = cross_entropy_gradient,
       .decompose = cross_entropy,
       .composite = true,
       .flops = cross_entropy_flops},
      {.id = GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD,
       .decompose = cross_entropy_backward,
       .composite = true,
       .flops = cross_entropy_flops},
      {.id = GPUNN_OP_SOFT_CROSS_ENTROPY,
       .gradient = soft_cross_entropy_gradient,
       .decompose = soft_cross_entropy,
       .flops = soft_cross_entropy_flops},
      {.id = GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD,
       .decompose = soft_cross_entropy_backward,
       .flops = soft_cross_entropy_flops},
  };
}

}  // namespace gpunn::graph
