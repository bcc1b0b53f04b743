#include "graph/expressions.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/output_types.hpp"

namespace gpunn::graph {

// Numbers of half precision become f32 where the op takes no others, and beside those of f32.
std::vector<ValueId> Expressions::outputs(int32_t op, std::vector<ValueId> inputs, Attributes attrs) {
  const ops::Signature& signature = op_row(op).signature;
  const auto half = [&](ValueId id) { return is_half(graph_.value(id).type.dtype); };
  const bool mixed = !std::ranges::all_of(inputs, half);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (half(inputs[i]) && (mixed || !signature.input(i).floating)) inputs[i] = to_f32(inputs[i]);
  }
  return graph_.add(op, name_, std::move(attrs), std::move(inputs));
}

ValueId Expressions::op(int32_t op, std::vector<ValueId> inputs, Attributes attrs) {
  return outputs(op, std::move(inputs), std::move(attrs)).front();
}

ValueId Expressions::add(ValueId a, ValueId b) { return op(GPUNN_OP_ADD, {a, b}); }
ValueId Expressions::sub(ValueId a, ValueId b) { return op(GPUNN_OP_SUB, {a, b}); }
ValueId Expressions::mul(ValueId a, ValueId b) { return op(GPUNN_OP_MUL, {a, b}); }
ValueId Expressions::div(ValueId a, ValueId b) { return op(GPUNN_OP_DIV, {a, b}); }
ValueId Expressions::maximum(ValueId a, ValueId b) { return op(GPUNN_OP_MAXIMUM, {a, b}); }
ValueId Expressions::minimum(ValueId a, ValueId b) { return op(GPUNN_OP_MINIMUM, {a, b}); }
ValueId Expressions::pow(ValueId a, ValueId b) { return op(GPUNN_OP_POW, {a, b}); }
ValueId Expressions::less(ValueId a, ValueId b) { return op(GPUNN_OP_LESS, {a, b}); }
ValueId Expressions::less_equal(ValueId a, ValueId b) { return op(GPUNN_OP_LESS_EQUAL, {a, b}); }
ValueId Expressions::equal(ValueId a, ValueId b) { return op(GPUNN_OP_EQUAL, {a, b}); }
ValueId Expressions::select(ValueId condition, ValueId a, ValueId b) { return op(GPUNN_OP_SELECT, {condition, a, b}); }
ValueId Expressions::exp(ValueId x) { return op(GPUNN_OP_EXP, {x}); }
ValueId Expressions::log(ValueId x) { return op(GPUNN_OP_LOG, {x}); }
ValueId Expressions::sqrt(ValueId x) { return op(GPUNN_OP_SQRT, {x}); }
ValueId Expressions::rsqrt(ValueId x) { return op(GPUNN_OP_RSQRT, {x}); }
ValueId Expressions::tanh(ValueId x) { return op(GPUNN_OP_TANH, {x}); }
ValueId Expressions::erf(ValueId x) { return op(GPUNN_OP_ERF, {x}); }

ValueId Expressions::sign(ValueId x) {
  const ValueId zero = constant(0);
  return sub(less(zero, x), less(x, zero));
}

ValueId Expressions::to_f32(ValueId x) { return converted(x, DType::f32); }

ValueId Expressions::converted(ValueId x, DType dtype) {
  const ValueId result = graph_.add_value(name_, {dtype, shape(x)}, Storage::arena);
  graph_.add_into(GPUNN_OP_COPY, name_, {}, {x}, {result});
  return result;
}

ValueId Expressions::truncated(ValueId x) { return to_f32(converted(x, DType::i32)); }

ValueId Expressions::of_first(ValueId x, int64_t count) {
  const int64_t size = shape(x)[0];
  if (count == size) return x;
  gpunn_pad_attrs attrs{};
  attrs.rank = 1;
  attrs.after[0] = size - count;
  return op(GPUNN_OP_PAD, {slice(x, 0, 0, count)}, Attributes::of(attrs));
}

ValueId Expressions::constant(double value, const Shape& of) {
  gpunn_fill_attrs attrs{};
  attrs.dtype = GPUNN_F32;
  attrs.rank = static_cast<int32_t>(of.size());
  std::copy(of.begin(), of.end(), attrs.dim);
  attrs.value = value;
  return op(GPUNN_OP_FILL, {}, Attributes::of(attrs));
}

ValueId Expressions::scaled(ValueId x, double factor) {
  const gpunn_scale_attrs attrs{.struct_size = 0, .factor = static_cast<float>(factor)};
  return op(GPUNN_OP_SCALE, {x}, Attributes::of(attrs));
}

ValueId Expressions::moving_average(ValueId old, ValueId fresh, float share) {
  return add(scaled(old, share), mul(fresh, constant(1.0 - share)));
}

// With T = tanh(exponent log(base) / 2): 2 T / (T - 1).
ValueId Expressions::one_minus_power(double base, ValueId exponent) {
  if (base == 0) return constant(1);
  const ValueId tangent = tanh(mul(exponent, constant(std::log(base) / 2)));
  return div(scaled(tangent, 2), sub(tangent, constant(1)));
}

ValueId Expressions::reduce(ValueId x, uint32_t axes, int32_t kind, bool keep_dims) {
  const gpunn_reduce_attrs attrs{.struct_size = 0, .kind = kind, .axes = axes, .keep_dims = keep_dims};
  return op(GPUNN_OP_REDUCE, {x}, Attributes::of(attrs));
}

ValueId Expressions::sum(ValueId x, uint32_t axes, bool keep_dims) {
  return reduce(x, axes, GPUNN_REDUCE_SUM, keep_dims);
}
ValueId Expressions::mean(ValueId x, uint32_t axes, bool keep_dims) {
  return reduce(x, axes, GPUNN_REDUCE_MEAN, keep_dims);
}
ValueId Expressions::max(ValueId x, uint32_t axes, bool keep_dims) {
  return reduce(x, axes, GPUNN_REDUCE_MAX, keep_dims);
}

ValueId Expressions::expand(ValueId x, const Shape& to) {
  if (shape(x) == to) return x;
  gpunn_expand_attrs attrs{};
  attrs.rank = static_cast<int32_t>(to.size());
  std::copy(to.begin(), to.end(), attrs.dim);
  return op(GPUNN_OP_EXPAND, {x}, Attributes::of(attrs));
}

ValueId Expressions::sum_to(ValueId x, const Shape& to) {
  const Shape from = shape(x);
  if (from == to) return x;
  const std::size_t lead = from.size() - to.size();
  uint32_t repeated = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (i < lead || (to[i - lead] == 1 && from[i] != 1)) repeated |= 1U << i;
  }
  return view(sum(x, repeated), to);
}

ValueId Expressions::view(ValueId x, const Shape& to) {
  if (shape(x) == to) return x;
  const TensorType type{graph_.value(x).type.dtype, to};
  return graph_.add_view(name_, x, type);
}

ValueId Expressions::slice(ValueId x, std::size_t dimension, int64_t from, int64_t size) {
  gpunn_slice_attrs attrs{};
  attrs.rank = static_cast<int32_t>(rank(x));
  std::copy(shape(x).begin(), shape(x).end(), attrs.size);
  attrs.start[dimension] = from;
  attrs.size[dimension] = size;
  return op(GPUNN_OP_SLICE, {x}, Attributes::of(attrs));
}

}  // namespace gpunn::graph
