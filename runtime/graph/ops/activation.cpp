// RELU, LEAKY_RELU, SIGMOID, TANH, GELU, SILU and their backwards.
#include <gpunn/ops.h>

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

using Gradient = void (*)(GradientContext&);
using Describe = std::string (*)(const Attributes&);
using Flops = double (*)(const OpSignature&);

OpInfo forward(int32_t id, Gradient gradient, Flops flops, Describe describe = nullptr) {
  return {.id = id, .gradient = gradient, .flops = flops, .describe = describe};
}

OpInfo backward(int32_t id, Flops flops, Describe describe = nullptr) {
  return {.id = id, .flops = flops, .describe = describe};
}

}  // namespace

std::vector<OpInfo> activation_ops() {
  return {
      forward(GPUNN_OP_RELU, gradient_from_output<GPUNN_OP_RELU_BACKWARD>, flops<1>),
      backward(GPUNN_OP_RELU_BACKWARD, flops<1>),
      forward(GPUNN_OP_LEAKY_RELU, gradient_from_input<GPUNN_OP_LEAKY_RELU_BACKWARD>, flops<2>, describe_slope),
      backward(GPUNN_OP_LEAKY_RELU_BACKWARD, flops<2>, describe_slope),
      forward(GPUNN_OP_SIGMOID, gradient_from_output<GPUNN_OP_SIGMOID_BACKWARD>, flops<4>),
      backward(GPUNN_OP_SIGMOID_BACKWARD, flops<3>),
      forward(GPUNN_OP_TANH, gradient_from_output<GPUNN_OP_TANH_BACKWARD>, flops<1>),
      backward(GPUNN_OP_TANH_BACKWARD, flops<3>),
      forward(GPUNN_OP_GELU, gradient_from_input<GPUNN_OP_GELU_BACKWARD>, flops<5>, describe_gelu),
      backward(GPUNN_OP_GELU_BACKWARD, flops<10>, describe_gelu),
      forward(GPUNN_OP_SILU, gradient_from_input<GPUNN_OP_SILU_BACKWARD>, flops<5>),
      backward(GPUNN_OP_SILU_BACKWARD, flops<8>),
  };
}

}  // namespace gpunn::graph
