#include <gpunn/ops.h>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Expressions;
using graph::ValueId;

ValueId round(const LayerContext& c) {
  Expressions e(c.graph, c.layer.name);
  const ValueId x = c.inputs[0];
  const std::string mode = c.arguments.choice("mode");
  const ValueId zero = e.constant(0);
  const ValueId y = mode == "nearest" ? rounded(e, x)
                    : mode == "floor" ? floor(e, x)
                    : mode == "ceil"  ? e.sub(zero, floor(e, e.scaled(x, -1)))
                                      : whole(e, x);
  // A zero has the sign of x.
  return e.select(e.equal(y, zero), e.mul(x, zero), y);
}

ValueId sign(const LayerContext& c) {
  Expressions e(c.graph, c.layer.name);
  const ValueId x = c.inputs[0];
  return e.select(e.equal(x, x), e.sign(x), x);
}

}  // namespace

ValueId whole(Expressions& e, ValueId x) {
  // Every f32 from 2^24 on is whole. The conversion is defined below 2^63 only.
  constexpr double kWhole = 1LL << 62;
  const ValueId truncated = e.to_f32(e.converted(x, DType::i64));
  return e.select(e.less(e.maximum(x, e.scaled(x, -1)), e.constant(kWhole)), truncated, x);
}

ValueId floor(Expressions& e, ValueId x) {
  const ValueId truncated = whole(e, x);
  return e.sub(truncated, e.less(x, truncated));
}

// Where the fraction is one half, the odd floor goes up.
ValueId rounded(Expressions& e, ValueId x) {
  const ValueId below = floor(e, x), fraction = e.sub(x, below), half = e.constant(0.5);
  const ValueId is_odd = e.sub(below, e.scaled(floor(e, e.scaled(below, 0.5)), 2));
  const ValueId up = e.add(e.less(half, fraction), e.mul(e.equal(fraction, half), is_odd));
  // Infinities have no fraction.
  return e.select(e.equal(fraction, fraction), e.add(below, up), below);
}

LayerFunctions rounding_layers() { return {{"round", round}, {"sign", sign}}; }

}  // namespace gpunn::nn
