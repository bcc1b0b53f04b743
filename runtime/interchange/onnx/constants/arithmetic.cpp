// Computes operators of several values that broadcast to each other, element by element.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "interchange/onnx/constants/evaluator.hpp"
#include "interchange/onnx/constants/sizes.hpp"

namespace gpunn::interchange::constants {

namespace {

// Up to opset 6 the second operand is aligned from `axis` on, not from its end.
Constant aligned(const Call& call, const Constant& a, Constant b) {
  constexpr int64_t kAlignedByAxis = 6;
  if (call.opset() > kAlignedByAxis || !call.has_attribute("axis")) return b;
  const std::size_t end = call.axis("axis", 0, a.shape.size()) + b.shape.size();
  if (end < a.shape.size()) b.shape.insert(b.shape.end(), a.shape.size() - end, 1);
  return b;
}

// Calls `visit(i, place in a, place in b)` for each element of the result.
template <class Visit>
void for_each_pair(const Shape& shape, const Shape& a, const Shape& b, std::size_t count, Visit visit) {
  Walk<2> walk(shape, {broadcast_steps(a, shape), broadcast_steps(b, shape)});
  for (std::size_t i = 0; i < count; ++i, walk.next()) visit(i, walk.place(0), walk.place(1));
}

template <class Function>
Constant combined_floats(Call& call, const Constant& a, const Constant& b, Element element, Function function) {
  const Shape shape = broadcast_shape(a.shape, b.shape);
  std::vector<double> values(static_cast<std::size_t>(call.importer().take_room(shape)));
  for_each_pair(shape, a.shape, b.shape, values.size(), [&](std::size_t i, std::size_t left, std::size_t right) {
    values[i] = function(a.number(left), b.number(right));
  });
  Constant result = rounded_constant(element, shape, std::move(values));
  result.trained = a.trained || b.trained;
  return result;
}

template <class Function>
Constant combined_integers(Call& call, const Constant& a, const Constant& b, Element result, Function function) {
  const Shape shape = broadcast_shape(a.shape, b.shape);
  std::vector<Size> values(static_cast<std::size_t>(call.importer().take_room(shape)));
  for_each_pair(shape, a.shape, b.shape, values.size(), [&](std::size_t i, std::size_t left, std::size_t right) {
    values[i] = function(a.element, a.integers[left], b.integers[right]);
  });
  return integers_constant(result, shape, std::move(values));
}

double plus(double a, double b) { return a + b; }
double minus(double a, double b) { return a - b; }
double times(double a, double b) { return a * b; }
double over(double a, double b) { return a / b; }
double remainder(double a, double b) { return std::fmod(a, b); }

Constant combined(Call& call, const Constant& a, const Constant& b, FloatFunction of_floats, SizeFunction of_integers) {
  require_numbers(a);
  require_same_type(a, b);
  if (is_floating(a.element)) return combined_floats(call, a, b, a.element, of_floats);
  return combined_integers(call, a, b, a.element, of_integers);
}

template <FloatFunction of_floats, SizeFunction of_integers>
void combine(Call& call) {
  const Constant& a = call.constant(0, "an operand");
  call.give_constant(combined(call, a, aligned(call, a, call.constant(1, "an operand")), of_floats, of_integers));
}

// Combines any number of values, two at a time.
template <FloatFunction of_floats, SizeFunction of_integers>
void combine_all(Call& call) {
  Constant result = call.constant(0, "an operand");
  require_numbers(result);
  for (std::size_t i = 1; i < call.count(); ++i) {
    result = combined(call, result, call.constant(i, "an operand"), of_floats, of_integers);
  }
  call.give_constant(std::move(result));
}

// Gives the sum, times a factor. The result is rounded once.
void give_sum(Call& call, double factor) {
  const Constant& first = call.constant(0, "an operand");
  require_floating(first);
  Constant sum = numbers_constant(Element::f64, first.shape, numbers_of(first));
  sum.trained = first.trained;
  for (std::size_t i = 1; i < call.count(); ++i) {
    const Constant& term = call.constant(i, "an operand");
    require_same_type(first, term);
    sum = combined_floats(call, sum, term, Element::f64, plus);
  }
  std::vector<double> values = *sum.doubles;
  for (double& value : values) value *= factor;
  Constant result = rounded_constant(first.element, sum.shape, std::move(values));
  result.trained = sum.trained;
  call.give_constant(std::move(result));
}

void sum(Call& call) { give_sum(call, 1); }
void mean(Call& call) { give_sum(call, 1.0 / static_cast<double>(std::max<std::size_t>(call.count(), 1))); }

void modulo(Call& call) {
  const bool truncates = call.integer("fmod", 0) != 0;
  if (!truncates && is_floating(call.constant(0, "an operand").element)) {
    throw Unsupported("divides floats without fmod, which ONNX wants for them");
  }
  truncates ? combine<remainder, remainder_sizes>(call) : combine<remainder, modulo_sizes>(call);
}

// The result has the type of the base, whatever that of the exponent is.
void power(Call& call) {
  const Constant& base = call.constant(0, "the base");
  const Constant exponent = aligned(call, base, call.constant(1, "the exponent"));
  require_numbers(base);
  require_numbers(exponent);
  const auto power_of = [](double a, double b) { return std::pow(a, b); };
  if (is_floating(base.element))
    return call.give_constant(combined_floats(call, base, exponent, base.element, power_of));
  if (!is_floating(exponent.element)) {
    return call.give_constant(combined_integers(call, base, exponent, base.element, power_of_sizes));
  }
  const Constant real_power = combined_floats(call, base, exponent, Element::f64, power_of);
  call.give_constant(cast_constant(real_power, base.element));
}

template <unsigned wanted>
void compare(Call& call) {
  const Constant& a = call.constant(0, "an operand");
  const Constant b = aligned(call, a, call.constant(1, "an operand"));
  if (wanted != kEqual || a.element != Element::boolean) require_numbers(a);
  require_same_type(a, b);
  if (!is_floating(a.element)) {
    return call.give_constant(combined_integers(call, a, b, Element::boolean, [](Element element, Size x, Size y) {
      return Size{is_in_order(orders_of(element, x, y), wanted) ? 1 : 0, false};
    }));
  }
  const Shape shape = broadcast_shape(a.shape, b.shape);
  std::vector<bool> truths(static_cast<std::size_t>(call.importer().take_room(shape)));
  for_each_pair(shape, a.shape, b.shape, truths.size(), [&](std::size_t i, std::size_t left, std::size_t right) {
    const double x = a.number(left), y = b.number(right);
    const unsigned order = x < y ? kLess : x > y ? kGreater : x == y ? kEqual : 0U;  // NaN has no order
    truths[i] = (order & wanted) != 0;
  });
  call.give_constant(truths_constant(shape, truths));
}

using BitFunction = uint64_t (*)(uint64_t, uint64_t);

uint64_t both(uint64_t a, uint64_t b) { return a & b; }
uint64_t either(uint64_t a, uint64_t b) { return a | b; }
uint64_t one_of(uint64_t a, uint64_t b) { return a ^ b; }

template <class Function>
void combine_bits(Call& call, Function function) {
  const Constant& a = call.constant(0, "an operand");
  const Constant b = aligned(call, a, call.constant(1, "an operand"));
  require_same_type(a, b);
  call.give_constant(combined_integers(call, a, b, a.element, [&](Element element, Size x, Size y) {
    if (x.of_batch || y.of_batch) throw Unsupported("computes with the bits of the size of the batch");
    const uint64_t bits = function(static_cast<uint64_t>(x.factor), static_cast<uint64_t>(y.factor));
    return Size{wrapped(element, static_cast<int64_t>(bits)), false};
  }));
}

template <BitFunction function>
void combine_truths(Call& call) {
  require_truths(call.constant(0, "an operand"));
  combine_bits(call, function);
}

template <BitFunction function>
void combine_bitwise(Call& call) {
  require_integers(call.constant(0, "an operand"));
  combine_bits(call, function);
}

// A shift by as many bits as an integer has leaves 0.
void shift_bits(Call& call) {
  const Constant& a = call.constant(0, "the integers");
  require_integers(a);
  if (format_of(a.element).is_signed)
    throw Unsupported("shifts " + name_of(a.element) + "; expected unsigned integers");
  const std::string direction = call.word("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") throw Unsupported("shifts in the direction '" + direction + "'");
  constexpr uint64_t kBits = 64;
  combine_bits(call, [is_left = direction == "LEFT"](uint64_t x, uint64_t by) {
    if (by >= kBits) return uint64_t{0};
    return is_left ? x << by : x >> by;
  });
}

// The bounds are attributes up to opset 10, and inputs later. A float without a bound is bounded by the largest number,
// so that it becomes finite. Where the lower bound is above the upper one, the upper one is the result.
void clip(Call& call) {
  Constant result = call.constant(0, "the data");
  require_numbers(result);
  constexpr int64_t kInputs = 11;
  const bool is_float = is_floating(result.element), has_inputs = call.opset() >= kInputs;
  const double most = has_inputs && is_float ? largest_of(result.element) : double{std::numeric_limits<float>::max()};
  const auto bound = [&](std::size_t input, const char* name, double otherwise, FloatFunction of_floats,
                         SizeFunction of_integers) {
    Constant limit;
    if (call.has(input)) {
      limit = call.constant(input, "the bound");
      if (limit.count() != 1)
        throw Unsupported("its bound is " + gpunn::to_string(limit.shape) + ", expected one number");
      limit.shape.clear();
    } else if (is_float) {
      limit = rounded_constant(result.element, {}, {has_inputs ? otherwise : call.number(name, otherwise)});
    } else {
      return;
    }
    const bool trained = result.trained;
    result = combined(call, result, limit, of_floats, of_integers);
    result.trained = trained;
  };
  bound(1, "min", -most, larger_float, larger_size);
  bound(2, "max", most, smaller_float, smaller_size);
  call.give_constant(std::move(result));
}

void prelu(Call& call) {
  const Constant& x = call.constant(0, "the data");
  require_numbers(x);
  Constant slope = call.constant(1, "the slopes");
  require_same_type(x, slope);
  // Up to opset 6 the slopes are those of channels, the second dimension.
  constexpr int64_t kByChannel = 6;
  if (call.opset() <= kByChannel && slope.shape.size() == 1 && slope.count() > 1 && x.shape.size() > 2) {
    slope.shape.insert(slope.shape.end(), x.shape.size() - 2, 1);
  }
  if (broadcast_shape(x.shape, slope.shape) != x.shape) {
    throw Unsupported("its slopes " + gpunn::to_string(slope.shape) + " don't broadcast to " +
                      gpunn::to_string(x.shape));
  }
  call.give_constant(combined(
      call, x, slope, [](double a, double b) { return a < 0 ? a * b : a; },
      [](Element element, Size a, Size b) {
        return a.factor < 0 && element != Element::u64 ? multiply_sizes(element, a, b) : a;
      }));
}

// Takes each element from one of two values of any type.
void select(Call& call) {
  const Constant &condition = call.constant(0, "the condition"), &a = call.constant(1, "a value"),
                 &b = call.constant(2, "a value");
  require_truths(condition);
  const Shape shape = broadcast_shape(condition.shape, broadcast_shape(a.shape, b.shape));
  Walk<3> walk(shape, {broadcast_steps(condition.shape, shape), broadcast_steps(a.shape, shape),
                       broadcast_steps(b.shape, shape)});
  call.give_constant(assembled(call, {&a, &b}, shape, [&](int64_t) {
    const std::size_t source = condition.integers[walk.place(0)].factor != 0 ? 0 : 1;
    const Origin origin{source, static_cast<int64_t>(walk.place(1 + source))};
    walk.next();
    return origin;
  }));
}

}  // namespace

std::vector<EvaluatorRow> arithmetic_evaluators() {
  return {
      {"Add", 1, combine<plus, add_sizes>},
      {"And", 1, combine_truths<both>},
      {"BitShift", 11, shift_bits},
      {"BitwiseAnd", 18, combine_bitwise<both>},
      {"BitwiseOr", 18, combine_bitwise<either>},
      {"BitwiseXor", 18, combine_bitwise<one_of>},
      {"Clip", 1, clip},
      {"Div", 1, combine<over, divide_sizes>},
      {"Equal", 1, compare<kEqual>},
      {"Greater", 1, compare<kGreater>},
      {"GreaterOrEqual", 12, compare<kGreater | kEqual>},
      {"Less", 1, compare<kLess>},
      {"LessOrEqual", 12, compare<kLess | kEqual>},
      {"Max", 1, combine_all<larger_float, larger_size>},
      {"Mean", 1, mean},
      {"Min", 1, combine_all<smaller_float, smaller_size>},
      {"Mod", 10, modulo},
      {"Mul", 1, combine<times, multiply_sizes>},
      {"Or", 1, combine_truths<either>},
      {"Pow", 1, power},
      {"PRelu", 1, prelu},
      {"Sub", 1, combine<minus, subtract_sizes>},
      {"Sum", 1, sum},
      {"Where", 9, select},
      {"Xor", 1, combine_truths<one_of>},
  };
}

}  // namespace gpunn::interchange::constants
