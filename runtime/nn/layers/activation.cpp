#include <gpunn/ops.h>

#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::ValueId;

// A layer that is the activation of its own name.
ValueId activation(const LayerContext& c) { return activate(c, c.layer.type, c.inputs[0]); }

ValueId leaky_relu(const LayerContext& c) {
  const gpunn_leaky_relu_attrs attrs{.struct_size = 0, .slope = static_cast<float>(c.arguments.number("slope"))};
  return c.graph.add1(GPUNN_OP_LEAKY_RELU, c.layer.name, Attributes::of(attrs), {c.inputs[0]});
}

ValueId gelu(const LayerContext& c) {
  const gpunn_gelu_attrs attrs{.struct_size = 0, .tanh = c.arguments.choice("approximate") == "tanh" ? 1 : 0};
  return c.graph.add1(GPUNN_OP_GELU, c.layer.name, Attributes::of(attrs), {c.inputs[0]});
}

ValueId over_classes(const LayerContext& c, int32_t op) {
  const Shape x = c.input_shape();
  if (c.arguments.choice("over") == "classes") require_rank(x, 2, "[N, classes]", "; put a flatten in front");
  const ValueId rows = view(c, c.inputs[0], {element_count(x) / x.back(), x.back()});
  return view(c, c.graph.add1(op, c.layer.name, {}, {rows}), x);
}

ValueId softmax(const LayerContext& c) { return over_classes(c, GPUNN_OP_SOFTMAX); }
ValueId log_softmax(const LayerContext& c) { return over_classes(c, GPUNN_OP_LOG_SOFTMAX); }

}  // namespace

LayerFunctions activation_layers() {
  return {
      {"relu", activation},    {"relu6", activation}, {"leaky_relu", leaky_relu},
      {"sigmoid", activation}, {"tanh", activation},  {"gelu", gelu},
      {"silu", activation},    {"softmax", softmax},  {"log_softmax", log_softmax},
  };
}

}  // namespace gpunn::nn
