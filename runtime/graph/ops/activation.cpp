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

}  // namespace

std::vector<OpInfo> activation_ops() {
  return {
      {.id = GPUNN_OP_RELU, .gradient = gradient_from_output<GPUNN_OP_RELU_BACKWARD>, .flops = flops<1>},
      {.id = GPUNN_OP_RELU_BACKWARD, .flops = flops<1>},
      {.id = GPUNN_OP_LEAKY_RELU,
       .gradient = gradient_from_input<GPUNN_OP_LEAKY_RELU_BACKWARD>,
       .flops = flops<2>,
       .describe = describe_slope},
      {.id = GPUNN_OP_LEAKY_RELU_BACKWARD, .flops = flops<2>, .describe = describe_slope},
      {.id = GPUNN_OP_SIGMOID, .gradient = gradient_from_output<GPUNN_OP_SIGMOID_BACKWARD>, .flops = flops<4>},
      {.id = GPUNN_OP_SIGMOID_BACKWARD, .flops = flops<3>},
      {.id = GPUNN_OP_TANH, .gradient = gradient_from_output<GPUNN_OP_TANH_BACKWARD>, .flops = flops<1>},
      {.id = GPUNN_OP_TANH_BACKWARD, .flops = flops<3>},
      {.id = GPUNN_OP_GELU,
       .gradient = gradient_from_input<GPUNN_OP_GELU_BACKWARD>,
       .flops = flops<5>,
       .describe = describe_gelu},
      {.id = GPUNN_OP_GELU_BACKWARD, .flops = flops<10>, .describe = describe_gelu},
      {.id = GPUNN_OP_SILU, .gradient = gradient_from_input<GPUNN_OP_SILU_BACKWARD>, .flops = flops<5>},
      {.id = GPUNN_OP_SILU_BACKWARD, .flops = flops<8>},
  };
}

}  // namespace gpunn::graph
