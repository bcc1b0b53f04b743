#include <gpunn/ops.h>

#include "conformance/gradients/function.hpp"

namespace gpunn::conformance {

namespace {

struct Activation {
  std::string name;
  int32_t op, backward;
  Source saved;  // what the backward reads beside dy
  graph::Attributes attrs = {};
};

GradientCase gradient(const Activation& activation, const Generator& x) {
  return {.name = "of " + activation.name,
          .inputs = {f32({7, 9}, x)},
          .forward = oracle_function(activation.op, activation.attrs),
          .op = activation.backward,
          .attrs = activation.attrs,
          .wires = {{Source::output_gradient, 0}, {activation.saved, 0}},
          .with_respect = {0}};
}

graph::Attributes gelu(int32_t tanh) { return graph::Attributes::of(gpunn_gelu_attrs{.struct_size = 0, .tanh = tanh}); }

}  // namespace

std::vector<GradientCase> activation_gradients() {
  const auto slope = graph::Attributes::of(gpunn_leaky_relu_attrs{.struct_size = 0, .slope = 0.2F});
  std::vector<GradientCase> cases{
      gradient({"RELU", GPUNN_OP_RELU, GPUNN_OP_RELU_BACKWARD, Source::output}, apart()),
      gradient({"LEAKY_RELU", GPUNN_OP_LEAKY_RELU, GPUNN_OP_LEAKY_RELU_BACKWARD, Source::input, slope}, apart())};
  for (const Activation& smooth :
       std::vector<Activation>{{"SIGMOID", GPUNN_OP_SIGMOID, GPUNN_OP_SIGMOID_BACKWARD, Source::output},
                               {"TANH", GPUNN_OP_TANH, GPUNN_OP_TANH_BACKWARD, Source::output},
                               {"GELU", GPUNN_OP_GELU, GPUNN_OP_GELU_BACKWARD, Source::input, gelu(0)},
                               {"GELU by tanh", GPUNN_OP_GELU, GPUNN_OP_GELU_BACKWARD, Source::input, gelu(1)},
                               {"SILU", GPUNN_OP_SILU, GPUNN_OP_SILU_BACKWARD, Source::input}}) {
    cases.push_back(gradient(smooth, uniform(-3, 3)));
  }
  return cases;
}

}  // namespace gpunn::conformance
