#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace gpunn::graph {

// Formulas over tensors, appended to a graph as core ops of one name. Operands broadcast.
class Expressions {
 public:
  Expressions(Graph& graph, std::string name) : graph_(graph), name_(std::move(name)) {}

  ValueId op(int32_t op, std::vector<ValueId> inputs, Attributes attrs = {});
  // All outputs of an op that has several.
  std::vector<ValueId> outputs(int32_t op, std::vector<ValueId> inputs, Attributes attrs = {});

  ValueId add(ValueId a, ValueId b);
  ValueId sub(ValueId a, ValueId b);
  ValueId mul(ValueId a, ValueId b);
  ValueId div(ValueId a, ValueId b);
  ValueId maximum(ValueId a, ValueId b);
  ValueId minimum(ValueId a, ValueId b);
  ValueId pow(ValueId a, ValueId b);
  ValueId less(ValueId a, ValueId b);
  ValueId less_equal(ValueId a, ValueId b);
  ValueId equal(ValueId a, ValueId b);
  ValueId select(ValueId condition, ValueId a, ValueId b);
  ValueId exp(ValueId x);
  ValueId log(ValueId x);
  ValueId sqrt(ValueId x);
  ValueId rsqrt(ValueId x);
  ValueId tanh(ValueId x);
  ValueId erf(ValueId x);

  // -1, 0 or 1.
  ValueId sign(ValueId x);
  // Integers, or numbers of half precision, as f32.
  ValueId to_f32(ValueId x);
  // By C's conversions.
  ValueId converted(ValueId x, DType dtype);
  // Of f32 within the range of i32: without its fraction.
  ValueId truncated(ValueId x);
  // A number, as often as the shape says.
  ValueId constant(double value, const Shape& shape = {});
  ValueId scaled(ValueId x, double factor);
  // share * old + (1 - share) * fresh
  ValueId moving_average(ValueId old, ValueId fresh, float share);
  // 1 - base^exponent for a base in [0, 1) and exponents above 0, without the loss of digits near 0.
  ValueId one_minus_power(double base, ValueId exponent);
  // `axes` is a mask of dimensions, which stay with sizes of 1, or go.
  ValueId sum(ValueId x, uint32_t axes, bool keep_dims = true);
  ValueId mean(ValueId x, uint32_t axes, bool keep_dims = true);
  ValueId max(ValueId x, uint32_t axes, bool keep_dims = true);
  // x broadcast to a shape, and the adjoint: the sum over repeated elements.
  ValueId expand(ValueId x, const Shape& shape);
  ValueId sum_to(ValueId x, const Shape& shape);
  // The same numbers under another shape.
  ValueId view(ValueId x, const Shape& shape);
  // x[..., from : from + size, ...] of a dimension.
  ValueId slice(ValueId x, std::size_t dimension, int64_t from, int64_t size);

  // x[n] with 0 behind its first `count` elements.
  ValueId of_first(ValueId x, int64_t count);

  const Shape& shape(ValueId x) const { return graph_.value(x).type.shape; }
  DType dtype(ValueId x) const { return graph_.value(x).type.dtype; }
  std::size_t rank(ValueId x) const { return shape(x).size(); }
  // The mask of all dimensions, and of the last one alone.
  uint32_t all(ValueId x) const { return (1U << rank(x)) - 1; }
  uint32_t last(ValueId x) const { return 1U << (rank(x) - 1); }

 private:
  ValueId reduce(ValueId x, uint32_t axes, int32_t kind, bool keep_dims);

  Graph& graph_;
  std::string name_;
};

}  // namespace gpunn::graph
