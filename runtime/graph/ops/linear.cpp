// MATMUL, BIAS_ADD, their gradients and composites.
#include <gpunn/ops.h>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"
#include "graph/ops/fused_activation.hpp"

namespace gpunn::graph {

namespace {

Attributes matmul(bool transpose_a, bool transpose_b) {
  return Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = transpose_a, .transpose_b = transpose_b});
}

// Of MATMUL and BATCH_MATMUL.
void matmul_gradient(GradientContext& c) {
  const int32_t product = c.node().op;
  const auto a = c.node().attrs.as<gpunn_matmul_attrs>();
  const bool ta = a.transpose_a != 0;
  const bool tb = a.transpose_b != 0;
  const ValueId dy = c.output_gradient();
  if (c.wants(1)) {
    c.set(1, tb ? c.add(product, matmul(true, ta), {dy, c.input(0)})
                : c.add(product, matmul(!ta, false), {c.input(0), dy}));
  }
  // Last, so that what comes before the op in the graph follows at once: a plugin may run both as one.
  if (c.wants(0)) {
    c.set(0, ta ? c.add(product, matmul(tb, true), {c.input(1), dy})
                : c.add(product, matmul(false, !tb), {dy, c.input(1)}));
  }
}

void bias_add_gradient(GradientContext& c) {
  if (c.wants(1)) c.set(1, c.add(GPUNN_OP_BIAS_BACKWARD, {}, {c.output_gradient()}));
  if (c.wants(0)) c.set(0, c.output_gradient());
}

std::vector<ValueId> matmul_bias_activation(Composition& c) {
  const auto a = c.attrs<gpunn_matmul_bias_activation_attrs>();
  const ValueId product = c.op(GPUNN_OP_MATMUL, {c.in(0), c.in(1)}, matmul(a.transpose_a != 0, a.transpose_b != 0));
  return {bias_and_activation(c, product, c.in(2), a.activation)};
}

std::vector<ValueId> bias_activation_backward(Composition& c) {
  const auto a = c.attrs<gpunn_bias_activation_backward_attrs>();
  const ValueId dx = activation_backward(c, c.in(0), c.in(1), a.activation);
  return {dx, c.op(GPUNN_OP_BIAS_BACKWARD, {dx})};
}

std::vector<ValueId> bias_add(Composition& c) { return {c.add(c.in(0), c.by_channel(c.in(1), c.in(0)))}; }
std::vector<ValueId> bias_backward(Composition& c) { return {c.channel_sum(c.in(0))}; }

double product_flops(const OpSignature& s) {
  const bool transpose_a = s.attrs.as<gpunn_matmul_attrs>().transpose_a != 0;  // first in both attribute structs
  const Shape& a = s.inputs[0].shape;
  const int64_t inner = a[a.size() - (transpose_a ? 2 : 1)];
  return 2.0 * static_cast<double>(s.outputs[0].elements()) * static_cast<double>(inner);
}

std::string describe_matmul(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_matmul_attrs>();
  std::string text;
  if (a.transpose_a != 0) text += "a transposed";
  if (a.transpose_b != 0) text += std::string(text.empty() ? "" : ", ") + "b transposed";
  return text;
}

std::string describe_matmul_bias_activation(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_matmul_bias_activation_attrs>();
  const std::string transposes = describe_matmul(matmul(a.transpose_a != 0, a.transpose_b != 0));
  return transposes + (transposes.empty() ? "" : ", ") + activation_text(a.activation);
}

std::string describe_bias_activation_backward(const Attributes& attrs) {
  return activation_text(attrs.as<gpunn_bias_activation_backward_attrs>().activation);
}

}  // namespace

std::vector<OpInfo> linear_ops() {
  return {
      {.id = GPUNN_OP_MATMUL, .gradient = matmul_gradient, .flops = product_flops, .describe = describe_matmul},
      {.id = GPUNN_OP_BATCH_MATMUL, .gradient = matmul_gradient, .flops = product_flops, .describe = describe_matmul},
      {.id = GPUNN_OP_BIAS_ADD, .gradient = bias_add_gradient, .decompose = bias_add},
      {.id = GPUNN_OP_BIAS_BACKWARD, .decompose = bias_backward},
      {.id = GPUNN_OP_MATMUL_BIAS_ACTIVATION,
       .decompose = matmul_bias_activation,
       .composite = true,
       .flops = product_flops,
       .describe = describe_matmul_bias_activation},
      {.id = GPUNN_OP_BIAS_ACTIVATION_BACKWARD,
       .decompose = bias_activation_backward,
       .composite = true,
       .describe = describe_bias_activation_backward},
  };
}

}  // namespace gpunn::graph
