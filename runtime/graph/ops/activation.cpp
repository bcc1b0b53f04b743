// RELU, LEAKY_RELU, SIGMOID, TANH, GELU, SILU and their backwards.
#include <gpunn/ops.h>

#include <cmath>
#include <numbers>
#include <sstream>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

// The backward from dy and y.
template <int32_t backward>
void gradient_from_output(GradientContext& c) {
  c.set(0, c.add(backward, c.node().attrs, {c.output_gradient(), c.output(0)}));
}

// The backward from dy and x.
template <int32_t backward>
void gradient_from_input(GradientContext& c) {
  c.set(0, c.add(backward, c.node().attrs, {c.output_gradient(), c.input(0)}));
}

std::string describe_slope(const Attributes& attrs) {
  std::ostringstream text;
  text << "slope " << attrs.as<gpunn_leaky_relu_attrs>().slope;
  return text.str();
}

std::string describe_gelu(const Attributes& attrs) { return attrs.as<gpunn_gelu_attrs>().tanh != 0 ? "tanh" : "erf"; }

// FLOPs of an element: what the formula needs, an exponential counting as one.
template <int per_element>
double flops(const OpSignature& op) {
  return per_element * static_cast<double>(op.outputs.at(0).elements());
}

std::vector<ValueId> relu(Composition& c) { return {c.maximum(c.in(0), c.constant(0))}; }

std::vector<ValueId> relu_backward(Composition& c) {
  const ValueId zero = c.constant(0);
  return {c.select(c.less(zero, c.in(1)), c.in(0), zero)};
}

std::vector<ValueId> leaky_relu(Composition& c) {
  const ValueId x = c.in(0);
  return {c.select(c.less(c.constant(0), x), x, c.scaled(x, c.attrs<gpunn_leaky_relu_attrs>().slope))};
}

std::vector<ValueId> leaky_relu_backward(Composition& c) {
  const ValueId dy = c.in(0);
  return {c.select(c.less(c.constant(0), c.in(1)), dy, c.scaled(dy, c.attrs<gpunn_leaky_relu_attrs>().slope))};
}

std::vector<ValueId> sigmoid(Composition& c) {
  const ValueId one = c.constant(1);
  return {c.div(one, c.add(one, c.exp(c.scaled(c.in(0), -1))))};
}

std::vector<ValueId> sigmoid_backward(Composition& c) {
  return {c.mul(c.in(0), c.mul(c.in(1), c.sub(c.constant(1), c.in(1))))};
}

std::vector<ValueId> tanh_backward(Composition& c) {
  return {c.mul(c.in(0), c.sub(c.constant(1), c.mul(c.in(1), c.in(1))))};
}

constexpr double kCubic = 0.044715;
const double kRootOfTwoByPi = std::sqrt(2 * std::numbers::inv_pi);

// tanh(sqrt(2 / pi) (x + 0.044715 x^3))
ValueId gelu_tanh(Composition& c, ValueId x) {
  const ValueId inner = c.add(x, c.scaled(c.mul(x, c.mul(x, x)), kCubic));
  return c.tanh(c.scaled(inner, kRootOfTwoByPi));
}

// P of gpunn_gelu_attrs.
ValueId gelu_share(Composition& c, ValueId x) {
  const bool tanh = c.attrs<gpunn_gelu_attrs>().tanh != 0;
  const ValueId odd = tanh ? gelu_tanh(c, x) : c.erf(c.scaled(x, std::numbers::sqrt2 / 2));
  return c.scaled(c.add(odd, c.constant(1)), 0.5);
}

std::vector<ValueId> gelu(Composition& c) { return {c.mul(c.in(0), gelu_share(c, c.in(0)))}; }

// dy (P + x P').
std::vector<ValueId> gelu_backward(Composition& c) {
  const ValueId x = c.in(1);
  ValueId slope = kNoValue;
  if (c.attrs<gpunn_gelu_attrs>().tanh != 0) {
    const ValueId t = gelu_tanh(c, x), one = c.constant(1);
    const ValueId inner = c.scaled(c.add(one, c.scaled(c.mul(x, x), 3 * kCubic)), kRootOfTwoByPi / 2);
    slope = c.mul(c.sub(one, c.mul(t, t)), inner);
  } else {
    slope = c.scaled(c.exp(c.scaled(c.mul(x, x), -0.5)), std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  }
  return {c.mul(c.in(0), c.add(gelu_share(c, x), c.mul(x, slope)))};
}

std::vector<ValueId> silu(Composition& c) { return {c.mul(c.in(0), c.op(GPUNN_OP_SIGMOID, {c.in(0)}))}; }

std::vector<ValueId> silu_backward(Composition& c) {
  const ValueId x = c.in(1), one = c.constant(1), s = c.op(GPUNN_OP_SIGMOID, {x});
  return {c.mul(c.in(0), c.mul(s, c.add(one, c.mul(x, c.sub(one, s)))))};
}

}  // namespace

std::vector<OpInfo> activation_ops() {
  return {
      {.id = GPUNN_OP_RELU,
       .gradient = gradient_from_output<GPUNN_OP_RELU_BACKWARD>,
       .decompose = relu,
       .flops = flops<1>},
      {.id = GPUNN_OP_RELU_BACKWARD, .decompose = relu_backward, .flops = flops<1>},
      {.id = GPUNN_OP_LEAKY_RELU,
       .gradient = gradient_from_input<GPUNN_OP_LEAKY_RELU_BACKWARD>,
       .decompose = leaky_relu,
       .flops = flops<2>,
       .describe = describe_slope},
      {.id = GPUNN_OP_LEAKY_RELU_BACKWARD,
       .decompose = leaky_relu_backward,
       .flops = flops<2>,
       .describe = describe_slope},
      {.id = GPUNN_OP_SIGMOID,
       .gradient = gradient_from_output<GPUNN_OP_SIGMOID_BACKWARD>,
       .decompose = sigmoid,
       .flops = flops<4>},
      {.id = GPUNN_OP_SIGMOID_BACKWARD, .decompose = sigmoid_backward, .flops = flops<3>},
      {.id = GPUNN_OP_TANH, .gradient = gradient_from_output<GPUNN_OP_TANH_BACKWARD>, .flops = flops<1>},
      {.id = GPUNN_OP_TANH_BACKWARD, .decompose = tanh_backward, .flops = flops<3>},
      {.id = GPUNN_OP_GELU,
       .gradient = gradient_from_input<GPUNN_OP_GELU_BACKWARD>,
       .decompose = gelu,
       .flops = flops<5>,
       .describe = describe_gelu},
      {.id = GPUNN_OP_GELU_BACKWARD, .decompose = gelu_backward, .flops = flops<10>, .describe = describe_gelu},
      {.id = GPUNN_OP_SILU,
       .gradient = gradient_from_input<GPUNN_OP_SILU_BACKWARD>,
       .decompose = silu,
       .flops = flops<5>},
      {.id = GPUNN_OP_SILU_BACKWARD, .decompose = silu_backward, .flops = flops<8>},
  };
}

}  // namespace gpunn::graph
