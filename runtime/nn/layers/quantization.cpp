#include <gpunn/ops.h>

#include <algorithm>
#include <iterator>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Expressions;
using graph::ValueId;

graph::Attributes stored_by(double scale, int64_t zero_point) {
  return graph::Attributes::of(gpunn_quantize_attrs{
      .struct_size = 0, .scale = static_cast<float>(scale), .zero_point = static_cast<int32_t>(zero_point)});
}

ValueId quantize(const LayerContext& c) {
  return c.graph.add1(GPUNN_OP_FAKE_QUANTIZE, c.layer.name,
                      stored_by(c.arguments.number("scale"), c.arguments.integer("zero_point")), {c.inputs[0]});
}

// A buffer that broadcasts to the input.
ValueId broadcast_buffer(const LayerContext& c, const char* name, InitKind init) {
  const Shape &x = c.input_shape(), shape = c.arguments.list("shape");
  Shape broadcast(x.size(), 1);
  bool fits = shape.size() < x.size();
  if (fits) std::ranges::copy(shape, broadcast.end() - std::ssize(shape));
  for (std::size_t i = 1; i < x.size(); ++i) fits = fits && (broadcast[i] == 1 || broadcast[i] == x[i]);
  if (!fits) fail("a shape of " + to_string(shape) + " does not broadcast to an input of " + to_string(x));
  return view(c, c.buffer({.name = name, .shape = shape, .init = init}), broadcast);
}

// The nearest integer of at most 65,535 on either side of 0, ties to even. FAKE_QUANTIZE rounds so within eight bits.
// It takes away multiples of 512 and of 4 first. Each difference is exact, and a multiple of 4 changes no tie.
ValueId nearest(Expressions& e, ValueId x) {
  constexpr int64_t kMiddle = 128;
  ValueId rest = x, sum = graph::kNoValue;
  for (const double step : {512.0, 4.0, 1.0}) {
    const ValueId part = e.op(GPUNN_OP_FAKE_QUANTIZE, {rest}, stored_by(step, kMiddle));
    sum = sum == graph::kNoValue ? part : e.add(sum, part);
    if (step > 1) rest = e.sub(rest, part);
  }
  return sum;
}

// Cut before it is rounded, which is the same, since the limits are integers.
ValueId integers(Expressions& e, ValueId x, ValueId scale, ValueId zero_point, double low, double high) {
  const ValueId least = e.sub(e.constant(low), zero_point), most = e.sub(e.constant(high), zero_point);
  return e.add(nearest(e, e.minimum(e.maximum(e.div(x, scale), least), most)), zero_point);
}

ValueId quantize_linear(const LayerContext& c) {
  const ValueId scale = broadcast_buffer(c, "scale", InitKind::ones);
  const ValueId zero_point = broadcast_buffer(c, "zero_point", InitKind::zeros);
  Expressions e(c.graph, c.layer.name);
  return integers(e, c.inputs[0], scale, zero_point, static_cast<double>(c.arguments.integer("low")),
                  static_cast<double>(c.arguments.integer("high")));
}

ValueId dequantize_linear(const LayerContext& c) {
  const ValueId scale = broadcast_buffer(c, "scale", InitKind::ones);
  const ValueId zero_point = broadcast_buffer(c, "zero_point", InitKind::zeros);
  Expressions e(c.graph, c.layer.name);
  return e.mul(e.sub(c.inputs[0], zero_point), scale);
}

// As ONNX's DynamicQuantizeLinear computes them. A batch of zeros has the scale 1.
ValueId dynamic_quantize(const LayerContext& c) {
  constexpr double kMost = 255;
  Expressions e(c.graph, c.layer.name);
  const ValueId x = c.inputs[0], zero = e.constant(0);
  const ValueId low = e.minimum(e.scaled(e.max(e.scaled(x, -1), e.all(x)), -1), zero);
  const ValueId high = e.maximum(e.max(x, e.all(x)), zero);
  const ValueId range = e.sub(high, low);
  const ValueId scale = e.select(e.equal(range, zero), e.constant(1), e.div(range, e.constant(kMost)));
  const ValueId most = e.constant(kMost);
  const ValueId zero_point = nearest(e, e.minimum(e.maximum(e.div(e.sub(zero, low), scale), zero), most));
  const std::string gives = c.arguments.choice("gives");
  if (gives == "values") return integers(e, x, scale, zero_point, 0, kMost);
  Shape one_a_row(c.input_shape().size(), 1);
  one_a_row[0] = c.input_shape()[0];
  return e.expand(gives == "scale" ? scale : zero_point, one_a_row);
}

}  // namespace

LayerFunctions quantization_layers() {
  return {
      {"quantize", quantize},
      {"quantize_linear", quantize_linear},
      {"dequantize_linear", dequantize_linear},
      {"dynamic_quantize", dynamic_quantize},
  };
}

}  // namespace gpunn::nn
