#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Expressions;
using graph::ValueId;

ValueId where(const LayerContext& c) {
  require_broadcast(c);
  return Expressions(c.graph, c.layer.name).select(c.inputs[0], c.inputs[1], c.inputs[2]);
}

ValueId compare(const LayerContext& c) {
  require_broadcast(c);
  Expressions e(c.graph, c.layer.name);
  const ValueId a = c.inputs[0], b = c.inputs[1];
  const std::string is = c.arguments.choice("is");
  if (is == "less") return e.less(a, b);
  if (is == "less_or_equal") return e.less_equal(a, b);
  if (is == "greater") return e.less(b, a);
  if (is == "greater_or_equal") return e.less_equal(b, a);
  const ValueId equal = e.equal(a, b);
  return is == "equal" ? equal : e.sub(e.constant(1), equal);
}

}  // namespace

LayerFunctions choice_layers() { return {{"where", where}, {"compare", compare}}; }

}  // namespace gpunn::nn
