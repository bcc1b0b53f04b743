#include <gpunn/ops.h>

#include <cmath>
#include <map>
#include <numbers>

#include "export/onnx_builder.hpp"

namespace gpunn::interchange {

namespace {

using Inputs = std::vector<std::string>;

// Ops that ONNX has under another name, with the same inputs.
const std::map<int32_t, const char*> kSame = {
    {GPUNN_OP_ADD, "Add"},     {GPUNN_OP_SUB, "Sub"},         {GPUNN_OP_MUL, "Mul"}, {GPUNN_OP_DIV, "Div"},
    {GPUNN_OP_MAXIMUM, "Max"}, {GPUNN_OP_MINIMUM, "Min"},     {GPUNN_OP_POW, "Pow"}, {GPUNN_OP_EXP, "Exp"},
    {GPUNN_OP_LOG, "Log"},     {GPUNN_OP_SQRT, "Sqrt"},       {GPUNN_OP_ERF, "Erf"}, {GPUNN_OP_RELU, "Relu"},
    {GPUNN_OP_TANH, "Tanh"},   {GPUNN_OP_SIGMOID, "Sigmoid"},
};
const std::map<int32_t, const char*> kComparisons = {
    {GPUNN_OP_EQUAL, "Equal"}, {GPUNN_OP_LESS, "Less"}, {GPUNN_OP_LESS_EQUAL, "LessOrEqual"}};

std::string cast(OnnxBuilder& b, const std::string& layer, const std::string& x, OnnxType to) {
  return b.add(layer, "Cast", {x}, {{"to", static_cast<int64_t>(to)}}, false);
}

std::string gelu(OnnxBuilder& b, const std::string& layer, const std::string& x, bool by_tanh) {
  if (b.opset() >= 20) {
    return b.add(layer, "Gelu", {x}, {{"approximate", std::string(by_tanh ? "tanh" : "none")}});
  }
  std::string inner = x;
  if (by_tanh) {
    const std::string square = b.add(layer, "Mul", {x, x}, {}, false);
    const std::string cube = b.add(layer, "Mul", {square, x}, {}, false);
    const std::string part = b.add(layer, "Mul", {cube, b.number(layer, 0.044715)}, {}, false);
    inner = b.add(layer, "Add", {x, part}, {}, false);
    inner = b.add(layer, "Mul", {inner, b.number(layer, std::sqrt(2 / std::numbers::pi))}, {}, false);
    inner = b.add(layer, "Tanh", {inner}, {}, false);
  } else {
    inner = b.add(layer, "Mul", {inner, b.number(layer, 1 / std::numbers::sqrt2)}, {}, false);
    inner = b.add(layer, "Erf", {inner}, {}, false);
  }
  const std::string above = b.add(layer, "Add", {inner, b.number(layer, 1)}, {}, false);
  const std::string twice = b.add(layer, "Mul", {x, above}, {}, false);
  return b.add(layer, "Mul", {twice, b.number(layer, 0.5)});
}

}  // namespace

bool add_elementwise_step(OnnxBuilder& b, const OnnxStep& step) {
  const graph::Node& node = *step.node;
  const std::string& layer = node.name;
  const auto inputs = [&] { return b.tensors(step.inputs); };
  const auto give = [&](const std::string& name) {
    b.define(step.outputs.front(), name);
    return true;
  };
  if (const auto same = kSame.find(node.op); same != kSame.end()) return give(b.add(layer, same->second, inputs()));
  if (const auto found = kComparisons.find(node.op); found != kComparisons.end()) {
    return give(cast(b, layer, b.add(layer, found->second, inputs()), OnnxType::f32));
  }
  switch (node.op) {
    case GPUNN_OP_SELECT: {
      Inputs all = inputs();
      all[0] = cast(b, layer, all[0], OnnxType::boolean);
      return give(b.add(layer, "Where", all));
    }
    case GPUNN_OP_RSQRT:
      return give(b.add(layer, "Div", {b.number(layer, 1), b.add(layer, "Sqrt", inputs(), {}, false)}));
    case GPUNN_OP_SCALE: {
      const double factor = node.attrs.as<gpunn_scale_attrs>().factor;
      return give(b.add(layer, "Mul", {inputs()[0], b.number(layer, factor)}));
    }
    case GPUNN_OP_AXPBY: {
      const auto attrs = node.attrs.as<gpunn_axpby_attrs>();
      const Inputs all = inputs();
      const std::string first = b.add(layer, "Mul", {all[0], b.number(layer, attrs.alpha)}, {}, false);
      const std::string second = b.add(layer, "Mul", {all[1], b.number(layer, attrs.beta)}, {}, false);
      return give(b.add(layer, "Add", {first, second}));
    }
    case GPUNN_OP_CLAMP: {
      const auto attrs = node.attrs.as<gpunn_clamp_attrs>();
      return give(b.add(layer, "Clip", {inputs()[0], b.number(layer, attrs.low), b.number(layer, attrs.high)}));
    }
    case GPUNN_OP_LEAKY_RELU:
      return give(b.add(layer, "LeakyRelu", inputs(), {{"alpha", node.attrs.as<gpunn_leaky_relu_attrs>().slope}}));
    case GPUNN_OP_GELU:
      return give(gelu(b, layer, inputs()[0], node.attrs.as<gpunn_gelu_attrs>().tanh != 0));
    case GPUNN_OP_SILU: {
      const std::string x = inputs()[0];
      return give(b.add(layer, "Mul", {x, b.add(layer, "Sigmoid", {x}, {}, false)}));
    }
    case GPUNN_OP_SOFTMAX:
      return give(b.add(layer, "Softmax", inputs(), {{"axis", int64_t{-1}}}));
    case GPUNN_OP_LOG_SOFTMAX:
      return give(b.add(layer, "LogSoftmax", inputs(), {{"axis", int64_t{-1}}}));
    case GPUNN_OP_BIAS_ADD: {  // not of a product
      const BatchShape x = b.shape(step.inputs[0]);
      BatchShape by_channel(x.size() - 1, {1, 0});
      by_channel[0] = x[1];
      std::string bias = b.tensor(step.inputs[1]);
      if (by_channel.size() > 1) bias = b.reshaped(layer, {bias, {x[1]}}, by_channel);
      return give(b.add(layer, "Add", {b.tensor(step.inputs[0]), bias}));
    }
    default:
      return false;
  }
}

}  // namespace gpunn::interchange
