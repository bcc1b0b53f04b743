// Layers that are formulas over core ops.
#include <gpunn/ops.h>

#include <algorithm>
#include <iterator>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/formulas.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Expressions;
using graph::ValueId;

Expressions formula(const LayerContext& c) { return {c.graph, c.layer.name}; }

ValueId elu(const LayerContext& c) {
  Expressions e = formula(c);
  return elu_of(e, c.inputs[0], c.arguments.number("alpha"));
}

ValueId selu(const LayerContext& c) {
  constexpr double kAlpha = 1.6732632423543772, kScale = 1.0507009873554805;  // of Klambauer et al.
  Expressions e = formula(c);
  return e.scaled(elu_of(e, c.inputs[0], kAlpha), kScale);
}

ValueId celu(const LayerContext& c) {
  Expressions e = formula(c);
  const ValueId x = c.inputs[0];
  const double alpha = c.arguments.number("alpha");
  const ValueId below_zero = e.sub(e.exp(negative(e, e.scaled(x, 1 / alpha))), e.constant(1));
  return e.add(positive(e, x), e.scaled(below_zero, alpha));
}

ValueId softplus(const LayerContext& c) {
  Expressions e = formula(c);
  return softplus_of(e, c.inputs[0]);
}

ValueId softsign(const LayerContext& c) {
  Expressions e = formula(c);
  return softsign_of(e, c.inputs[0]);
}

ValueId mish(const LayerContext& c) {
  Expressions e = formula(c);
  return e.mul(c.inputs[0], e.tanh(softplus_of(e, c.inputs[0])));
}

ValueId hard_sigmoid(const LayerContext& c) {
  Expressions e = formula(c);
  return hard_sigmoid_of(e, c.inputs[0], c.arguments.number("slope"), c.arguments.number("offset"));
}

ValueId hard_swish(const LayerContext& c) {
  Expressions e = formula(c);
  return e.mul(c.inputs[0], hard_sigmoid_of(e, c.inputs[0], 1.0 / 6, 0.5));
}

// A shape of as many dimensions as x with the channels' size alone.
Shape of_channels(const Shape& x) {
  Shape shape(x.size(), 1);
  shape[1] = x[1];
  return shape;
}

ValueId prelu(const LayerContext& c) {
  const Shape x = c.input_shape();
  const bool channels = c.arguments.boolean("channels");
  // Training starts from a ReLU, PyTorch's from 0.25.
  const ValueId slope = c.parameter({.name = "weight", .shape = {channels ? x[1] : 1}, .init = InitKind::zeros});
  Expressions e = formula(c);
  const ValueId factor = view(c, slope, channels ? of_channels(x) : Shape(x.size(), 1));
  return e.add(positive(e, c.inputs[0]), e.mul(negative(e, c.inputs[0]), factor));
}

ValueId clamp(const LayerContext& c) {
  Expressions e = formula(c);
  return clamped(e, c.inputs[0], c.arguments.number("low"), c.arguments.number("high"));
}

// Without the sign of a negative zero, which a maximum may keep.
ValueId abs(const LayerContext& c) {
  Expressions e = formula(c);
  return e.add(absolute(e, c.inputs[0]), e.constant(0));
}
ValueId exp(const LayerContext& c) { return formula(c).exp(c.inputs[0]); }
ValueId log(const LayerContext& c) { return formula(c).log(c.inputs[0]); }
ValueId erf(const LayerContext& c) { return formula(c).erf(c.inputs[0]); }

// The usual exponents by ops whose gradients are defined wherever the power is.
ValueId power(const LayerContext& c) {
  Expressions e = formula(c);
  const ValueId x = c.inputs[0];
  const double exponent = c.arguments.number("exponent");
  if (exponent == 1) return x;
  if (exponent == 2) return e.mul(x, x);
  if (exponent == 0.5) return e.sqrt(x);
  if (exponent == -0.5) return e.rsqrt(x);
  if (exponent == -1) return e.div(e.constant(1), x);
  return e.pow(x, e.constant(exponent));
}

ValueId affine(const LayerContext& c) {
  const Shape x = c.input_shape();
  Shape shape = c.arguments.list("shape");
  const bool by_channel = shape == Shape{0};
  if (by_channel) shape = {x[1]};
  Shape broadcast(x.size(), 1);
  bool fits = shape.size() < x.size();
  if (by_channel) {
    broadcast[1] = x[1];
  } else if (fits) {
    std::ranges::copy(shape, broadcast.end() - std::ssize(shape));
    for (std::size_t i = 1; i < x.size(); ++i) fits = fits && (broadcast[i] == 1 || broadcast[i] == x[i]);
  }
  if (!fits) fail("a shape of " + to_string(shape) + " does not broadcast to an input of " + to_string(x));
  const auto tensor = [&](const char* name, InitKind init) {
    const Parameter parameter{.name = name, .shape = shape, .init = init};
    return c.arguments.boolean("trained") ? c.parameter(parameter) : c.buffer(parameter);
  };
  Expressions e = formula(c);
  ValueId y = c.inputs[0];
  if (c.arguments.boolean("weight")) y = e.mul(y, view(c, tensor("weight", InitKind::ones), broadcast));
  if (!c.arguments.boolean("bias")) return y;
  const ValueId bias = tensor("bias", InitKind::zeros);
  if (by_channel) return e.op(GPUNN_OP_BIAS_ADD, {y, bias});
  return e.add(y, view(c, bias, broadcast));
}

// Halves of a dimension times each other until one entry is left, which is exact where a sum of logarithms is not.
ValueId product_along(Expressions& e, ValueId x, std::size_t dimension) {
  for (int64_t size = e.shape(x)[dimension]; size > 1; size = e.shape(x)[dimension]) {
    const int64_t half = size / 2;
    const ValueId product = e.mul(e.slice(x, dimension, 0, half), e.slice(x, dimension, half, half));
    if (size % 2 == 0) {
      x = product;
      continue;
    }
    const gpunn_concat_attrs attrs{.struct_size = 0, .axis = static_cast<int32_t>(dimension)};
    x = e.op(GPUNN_OP_CONCAT, {product, e.slice(x, dimension, size - 1, 1)}, graph::Attributes::of(attrs));
  }
  return x;
}

ValueId product(Expressions& e, ValueId x, uint32_t axes) {
  for (std::size_t i = 0; i < e.rank(x); ++i) {
    if ((axes >> i & 1U) != 0) x = product_along(e, x, i);
  }
  return x;
}

ValueId reduce(const LayerContext& c) {
  const Shape x = c.input_shape();
  uint32_t axes = 0;
  const std::vector<int64_t> dimensions = c.arguments.list("dimensions");
  for (const int64_t dimension : dimensions) {
    if (dimension + 1 >= std::ssize(x)) {
      fail("dimension " + std::to_string(dimension) + " of a sample of " + to_string(Shape(x.begin() + 1, x.end())) +
           " does not exist");
    }
    axes |= 1U << (dimension + 1);
  }
  const bool keep = c.arguments.boolean("keep");
  Expressions e = formula(c);
  const std::string function = c.arguments.choice("function");
  const ValueId y = function == "mean"  ? e.mean(c.inputs[0], axes)
                    : function == "sum" ? e.sum(c.inputs[0], axes)
                    : function == "max" ? e.max(c.inputs[0], axes)
                    : function == "min" ? e.scaled(e.max(e.scaled(c.inputs[0], -1), axes), -1)
                                        : product(e, c.inputs[0], axes);
  if (keep) return y;
  Shape left;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if ((axes >> i & 1U) == 0) left.push_back(x[i]);
  }
  if (left.size() == 1) left.push_back(1);  // a sample has a dimension
  return view(c, y, left);
}

}  // namespace

LayerFunctions function_layers() {
  return {
      {"elu", elu},
      {"selu", selu},
      {"celu", celu},
      {"softplus", softplus},
      {"softsign", softsign},
      {"mish", mish},
      {"hard_sigmoid", hard_sigmoid},
      {"hard_swish", hard_swish},
      {"prelu", prelu},
      {"clamp", clamp},
      {"abs", abs},
      {"exp", exp},
      {"log", log},
      {"erf", erf},
      {"power", power},
      {"affine", affine},
      {"reduce", reduce},
  };
}

}  // namespace gpunn::nn
