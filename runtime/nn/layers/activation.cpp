#include <gpunn/ops.h>

#include "graph/expressions.hpp"
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

// max(x, 0) + weight * min(x, 0), with a weight for each channel or feature.
ValueId prelu(const LayerContext& c) {
  const Shape x = c.input_shape();
  if (x.size() < 2) fail("expected an input of [N, C, ...], found " + to_string(x));
  const ValueId weight = c.parameter(
      {.name = "weight", .shape = {x[1]}, .init = InitKind::constant, .value = c.arguments.number("slope")});
  Shape by_channel(x.size(), 1);
  by_channel[1] = x[1];
  graph::Expressions e(c.graph, c.layer.name);
  const ValueId zero = e.constant(0);
  return e.add(e.maximum(c.inputs[0], zero), e.mul(e.minimum(c.inputs[0], zero), e.view(weight, by_channel)));
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
      {"relu", activation},
      {"relu6", activation},
      {"leaky_relu", leaky_relu},
      {"prelu", prelu},
      {"sigmoid", activation},
      {"tanh", activation},
      {"gelu", gelu},
      {"silu", activation},
      {"softmax", softmax},
      {"log_softmax", log_softmax},
  };
}

}  // namespace gpunn::nn
