// Sums, products and the like: of layers, or of a layer and a constant.
#include <algorithm>
#include <functional>
#include <iterator>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/fold.hpp"
#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

// The constant's shape as dimensions of a row, less those of 1 in front.
Shape within_row(const Constant& constant, const Shape& row) {
  Shape shape = constant.shape;
  while (!shape.empty() && shape.front() == 1) shape.erase(shape.begin());
  bool fits = is_floating(constant.element) && shape.size() <= row.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) {
    const int64_t size = row[row.size() - shape.size() + i];
    fits = shape[i] == 1 || size == 1 || shape[i] == size;
  }
  if (!fits) {
    throw Unsupported("its constant is " + name_of(constant.element) + gpunn::to_string(constant.shape) +
                      ", which does not broadcast to rows of " + gpunn::to_string(row));
  }
  return shape.empty() ? Shape{1} : shape;
}

// Sizes of 1 become those of the last dimensions, to which they broadcast.
Value expanded(Call& call, const Value& x, const Shape& last) {
  Value y = x;
  const Shape row = row_of(x);
  for (std::size_t i = 0; i < last.size(); ++i) {
    const std::size_t dimension = row.size() - last.size() + i;
    if (row[dimension] == 1 && last[i] > 1) y = repeated(call, y, dimension, last[i]);
  }
  return y;
}

// Whether a value is the input, or what a few constants that stay as they are make of it.
bool is_of_input(Call& call, const std::string& name) {
  constexpr int kMostSteps = 16;
  std::string source = name;
  for (int step = 0; step < kMostSteps && source != "input"; ++step) {
    const LayerSpec* layer = call.importer().find_layer(source);
    if (layer == nullptr || layer->type != "affine") return false;
    const bool is_fixed = std::ranges::any_of(layer->parameters, [](const LayerParameter& one) {
      return one.name == "trained" && one.values == std::vector<std::string>{text(false)};
    });
    if (!is_fixed) return false;
    source = layer->from.front();
  }
  return source == "input";
}

// x * weight + bias; a nullptr: without it. A constant that training may change is a parameter, another one a buffer.
Value affine(Call& call, const Value& narrow, const Constant* weight, const Constant* bias) {
  if (bias != nullptr && is_floating(bias->element) && hides_a_row(*bias)) {
    throw Unsupported("its constant is -inf in all of a row");
  }
  const Constant& first = weight != nullptr ? *weight : *bias;
  Shape shape = within_row(first, row_of(narrow));
  const Value x = expanded(call, narrow, shape);
  const Shape row = row_of(x);
  const bool by_channel = shape.size() == row.size() && shape.front() == row.front() && element_count(shape) == row[0];
  if (by_channel) shape = {row.front()};
  const bool trained = first.trained && element_count(shape) > 1 && !is_of_input(call, x.layer);
  Keys keys = {{"weight", {text(weight != nullptr)}}, {"bias", {text(bias != nullptr)}}, {"trained", {text(trained)}}};
  if (!by_channel) keys.push_back({"shape", texts(shape)});
  Value y = call.layer("affine", {&x}, keys, row);
  if (weight != nullptr) call.set_tensor(y, "weight", shape, *weight);
  if (bias != nullptr) call.set_tensor(y, "bias", shape, *bias);
  return y;
}

Constant mapped(const Constant& from, const std::function<float(float)>& function) {
  if (!is_floating(from.element)) throw Unsupported("its constant is " + name_of(from.element));
  std::vector<float> values = *from.floats;
  std::ranges::transform(values, values.begin(), function);
  Constant result = floats_constant(from.shape, std::move(values));
  result.trained = from.trained;
  return result;
}

// The layer `type` of two values whose shapes are equal but for sizes of 1.
Value merged(Call& call, const char* type, const Value& a, const Value& b) {
  const Shape first = row_of(a), second = row_of(b);
  Shape row;
  for (std::size_t i = 0; first.size() == second.size() && i < first.size(); ++i) {
    if (first[i] != second[i] && first[i] != 1 && second[i] != 1) break;
    row.push_back(std::max(first[i], second[i]));
  }
  if (row.size() != first.size() || first.size() != second.size()) {
    throw Unsupported("takes values of " + to_string(a.shape) + " and " + to_string(b.shape) +
                      "; layers take equal shapes, or sizes of 1");
  }
  return call.layer(type, {&a, &b}, {}, row);
}

Value sum_of(Call& call, const Value& a, const Value& b) {
  if (!a.constant && !b.constant) return merged(call, "add", a, b);
  const Constant& term = a.constant ? *a.constant : *b.constant;
  return affine(call, a.constant ? b : a, nullptr, &term);
}

// A constant less its dimension at the place of the batch, which goes in front of all others.
Constant without_batch(const Call& call, const Constant& constant) {
  const BatchPlace& place = call.place();
  if (place == BatchPlace() || place.others != 1) return constant;
  std::size_t rank = 0;
  for (std::size_t i = 0; i < call.count(); ++i) {
    if (!call.input(i).constant) rank = call.input(i).shape.size();
  }
  const std::size_t from_end = rank - place.dimension;
  Constant moved = constant;
  if (moved.shape.size() < from_end) return moved;
  const auto at = moved.shape.end() - static_cast<std::ptrdiff_t>(from_end);
  if (*at != 1) throw Unsupported("its constant " + gpunn::to_string(constant.shape) + " differs along the batch");
  moved.shape.erase(at);
  return moved;
}

// Data of a layer, or a constant. Up to opset 6 the second one is aligned from `axis` on, not from its end.
Value operand(const Call& call, std::size_t i) {
  if (!call.input(i).constant) return call.data(i);
  Value value = constant_value(without_batch(call, *call.input(i).constant));
  constexpr int64_t kAlignedByAxis = 6;
  if (call.opset() > kAlignedByAxis || i == 0 || !call.has_attribute("axis")) return value;
  const std::size_t rank = call.input(0).shape.size();
  const std::size_t end = call.axis("axis", 0, rank) + value.constant->shape.size();
  Constant aligned = *value.constant;
  if (end < rank) aligned.shape.insert(aligned.shape.end(), rank - end, 1);
  return constant_value(std::move(aligned));
}

void add(Call& call) { call.give(sum_of(call, operand(call, 0), operand(call, 1))); }

Value difference(Call& call, const Value& a, const Value& b) {
  if (!a.constant && !b.constant) return merged(call, "subtract", a, b);
  if (b.constant) {
    const Constant term = mapped(*b.constant, std::negate<>());
    return affine(call, a, nullptr, &term);
  }
  return affine(call, call.scaled(b, -1), nullptr, &*a.constant);
}

void subtract(Call& call) { call.give(difference(call, operand(call, 0), operand(call, 1))); }

// 1 where x is above 0, else 0. Any normal number times this is 1 or more.
Value is_above_zero(Call& call, const Value& x) {
  constexpr double kLarge = 3e38;
  const Value large = call.scaled(x, kLarge);
  return call.layer("clamp", {&large}, {{"low", {"0"}}, {"high", {"1"}}}, row_of(x));
}

// 1 - x
Value opposite(Call& call, const Value& x) {
  Value y = call.layer("affine", {&x}, {{"shape", {"1"}}, {"trained", {"false"}}}, row_of(x));
  call.set_tensor(y, "weight", {1}, floats_constant({1}, {-1}));
  call.set_tensor(y, "bias", {1}, floats_constant({1}, {1}));
  return y;
}

// Truth values of data are 0 and 1.
void greater(Call& call) { call.give(is_above_zero(call, difference(call, operand(call, 0), operand(call, 1)))); }
void less(Call& call) { call.give(is_above_zero(call, difference(call, operand(call, 1), operand(call, 0)))); }
void at_most(Call& call) {
  call.give(opposite(call, is_above_zero(call, difference(call, operand(call, 0), operand(call, 1)))));
}
void at_least(Call& call) {
  call.give(opposite(call, is_above_zero(call, difference(call, operand(call, 1), operand(call, 0)))));
}
void negate_truth(Call& call) { call.give(opposite(call, call.data(0))); }
void both(Call& call) { call.give(merged(call, "minimum", call.data(0), call.data(1))); }
void either(Call& call) { call.give(merged(call, "maximum", call.data(0), call.data(1))); }

void sign(Call& call) {
  const Value& x = call.data(0);
  const Value positive = is_above_zero(call, x), negative = is_above_zero(call, call.scaled(x, -1));
  call.give(merged(call, "subtract", positive, negative));
}

// x * sigmoid(x).
bool gate(Call& call) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Value &x = call.data(1 - i), &factor = call.data(i);
    const LayerSpec* layer = call.importer().find_layer(factor.layer);
    if (layer == nullptr || layer->type != "sigmoid" || layer->from.front() != x.layer || x.shape != factor.shape)
      continue;
    call.give(call.layer("silu", {&x}, {}, call.sample(0)));
    return true;
  }
  return false;
}

void multiply(Call& call) {
  const Value a = operand(call, 0), b = operand(call, 1);
  if (a.constant || b.constant) {
    return call.give(affine(call, a.constant ? b : a, a.constant ? &*a.constant : &*b.constant, nullptr));
  }
  if (!gate(call)) call.give(merged(call, "multiply", a, b));
}

void divide(Call& call) {
  const Value a = operand(call, 0), b = operand(call, 1);
  if (!a.constant && !b.constant) return call.give(merged(call, "divide", a, b));
  if (b.constant) {
    const Constant factor = mapped(*b.constant, [](float x) { return 1 / x; });
    return call.give(affine(call, a, &factor, nullptr));
  }
  const Value inverse = call.layer("power", {&b}, {{"exponent", {"-1"}}}, row_of(b), "inverse");
  call.give(affine(call, inverse, &*a.constant, nullptr));
}

// The larger or smaller of a value and a constant of one number, which is a bound.
Value bounded(Call& call, const Value& x, const Constant& bound, bool upper) {
  const bool is_one = is_floating(bound.element) && !bound.floats->empty() &&
                      std::ranges::all_of(*bound.floats, [&](float one) { return one == bound.floats->front(); });
  if (!is_one) throw Unsupported("its bounds are not one number");
  constexpr double kLargest = 3.4e38;
  const double at = std::clamp<double>(bound.floats->front(), -kLargest, kLargest);
  const Keys keys = {{"low", {text(upper ? -kLargest : at)}}, {"high", {text(upper ? at : kLargest)}}};
  return call.layer("clamp", {&x}, keys, row_of(x));
}

// From the first input on, two at a time.
Value folded(Call& call, const std::function<Value(const Value&, const Value&)>& step) {
  Value result = operand(call, 0);
  for (std::size_t i = 1; i < call.count(); ++i) result = step(result, operand(call, i));
  if (result.constant) throw Unsupported("takes constants alone");
  return result;
}

void sum(Call& call) {
  call.give(folded(call, [&](const Value& a, const Value& b) { return sum_of(call, a, b); }));
}

void mean(Call& call) {
  const Value all = folded(call, [&](const Value& a, const Value& b) { return sum_of(call, a, b); });
  call.give(call.count() == 1 ? all : call.scaled(all, 1.0 / static_cast<double>(call.count())));
}

void extreme(Call& call, const char* type, bool upper) {
  call.give(folded(call, [&](const Value& a, const Value& b) {
    if (!a.constant && !b.constant) return merged(call, type, a, b);
    if (a.constant && b.constant) throw Unsupported("takes several constants");
    return bounded(call, a.constant ? b : a, a.constant ? *a.constant : *b.constant, upper);
  }));
}
void maximum(Call& call) { extreme(call, "maximum", false); }
void minimum(Call& call) { extreme(call, "minimum", true); }

// A value that can be multiplied by 0.
Value finite(Call& call, const Value& x) {
  return call.layer("clamp", {&x}, {{"low", {"-3.4e38"}}, {"high", {"3.4e38"}}}, row_of(x));
}

// The part of a choice that a condition of data, 0 or 1, leaves of a value.
Value chosen(Call& call, const Value& condition, const Value& x) {
  if (x.constant) {
    if (!is_floating(x.constant->element)) throw Unsupported("its constant is " + name_of(x.constant->element));
    const Constant bounded = mapped(*x.constant, [](float one) { return std::clamp(one, -3.4e38F, 3.4e38F); });
    return affine(call, condition, &bounded, nullptr);
  }
  return merged(call, "multiply", condition, finite(call, x));
}

// A value where a condition is true, and another one where it is false.
void select(Call& call) {
  if (!call.input(0).constant) {
    const Value& condition = call.data(0);
    const Value a = chosen(call, condition, operand(call, 1));
    return call.give(merged(call, "add", a, chosen(call, opposite(call, condition), operand(call, 2))));
  }
  const Constant& condition = call.constant(0, "the condition");
  if (is_floating(condition.element)) throw Unsupported("its condition is no truth values");
  Constant mask = without_batch(call, condition), rest = mask;
  std::vector<float> wanted, others;
  for (const Size& size : mask.integers) {
    wanted.push_back(size.factor != 0 ? 1 : 0);
    others.push_back(size.factor != 0 ? 0 : 1);
  }
  mask = floats_constant(mask.shape, std::move(wanted));
  rest = floats_constant(rest.shape, std::move(others));
  const Value a = operand(call, 1), b = operand(call, 2);
  if (a.constant && b.constant) throw Unsupported("takes constants alone");
  if (!a.constant && !b.constant) {
    return call.give(merged(call, "add", affine(call, a, &mask, nullptr), affine(call, b, &rest, nullptr)));
  }
  // The constant goes where the other value is multiplied by 0.
  const Constant &weight = a.constant ? rest : mask, &used = a.constant ? mask : rest;
  const Constant& values = a.constant ? *a.constant : *b.constant;
  if (!is_floating(values.element)) throw Unsupported("its constant is " + name_of(values.element));
  const Shape shape = broadcast_shape(used.shape, values.shape);
  std::vector<float> terms, factors;
  for (int64_t i = 0, count = call.importer().take_room(shape); i < count; ++i) {
    const auto place = static_cast<std::size_t>(broadcast_place(i, shape, used.shape));
    const auto of_values = static_cast<std::size_t>(broadcast_place(i, shape, values.shape));
    terms.push_back((*used.floats)[place] != 0 ? (*values.floats)[of_values] : 0);
    factors.push_back((*weight.floats)[place]);
  }
  const Constant bias = floats_constant(shape, std::move(terms)), factor = floats_constant(shape, std::move(factors));
  call.give(affine(call, a.constant ? b : a, &factor, &bias));
}

void negate(Call& call) { call.give(call.scaled(call.data(0), -1)); }

void power(Call& call) {
  const double exponent = call.scalar(1, "the exponent");
  call.give_layer("power", {{"exponent", {text(exponent)}}}, call.sample(0));
}

template <auto& exponent>
void fixed_power(Call& call) {
  call.give_layer("power", {{"exponent", {exponent}}}, call.sample(0));
}
constexpr char kHalf[] = "0.5", kInverse[] = "-1";

}  // namespace

std::vector<OpRow> elementwise_rows() {
  return {{"Add", 6, add},
          {"Sub", 6, subtract},
          {"Mul", 6, multiply},
          {"Div", 6, divide},
          {"Sum", 6, sum},
          {"Mean", 6, mean},
          {"Max", 6, maximum},
          {"Min", 6, minimum},
          {"Where", 9, select},
          {"Greater", 7, greater},
          {"Less", 7, less},
          {"GreaterOrEqual", 12, at_least},
          {"LessOrEqual", 12, at_most},
          {"Not", 1, negate_truth},
          {"And", 7, both},
          {"Or", 7, either},
          {"Sign", 9, sign},
          {"Neg", 6, negate},
          {"Pow", 6, power},
          {"Sqrt", 6, fixed_power<kHalf>},
          {"Reciprocal", 6, fixed_power<kInverse>}};
}

}  // namespace gpunn::interchange
