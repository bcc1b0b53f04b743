// Sums, products and the like, of data and constants.
#include <algorithm>
#include <cmath>
#include <string>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/operands.hpp"
#include "interchange/onnx/placement.hpp"

namespace gpunn::interchange {

namespace {

// Up to opset 6 the second operand is aligned from `axis` on, not from its end.
Value operand(const Call& call, std::size_t i) {
  const Value& value = call.input(i);
  constexpr int64_t kAlignedByAxis = 6;
  if (call.opset() > kAlignedByAxis || i == 0 || !value.constant || !call.has_attribute("axis")) return value;
  const std::size_t rank = call.input(0).shape.size();
  const std::size_t end = call.axis("axis", 0, rank) + value.constant->shape.size();
  Constant aligned = *value.constant;
  if (end < rank) aligned.shape.insert(aligned.shape.end(), rank - end, 1);
  return constant_value(std::move(aligned));
}

template <Value (*function)(Call&, const Value&, const Value&)>
void binary(Call& call) {
  call.give(function(call, operand(call, 0), operand(call, 1)));
}

// x * sigmoid(x).
bool give_gate(Call& call) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Value &x = call.input(1 - i), &factor = call.input(i);
    if (x.constant || factor.constant || x.parts != factor.parts) continue;
    const LayerSpec* layer = call.importer().find_layer(factor.layer);
    if (layer == nullptr || layer->type != "sigmoid" || layer->from.front() != x.layer || x.shape != factor.shape)
      continue;
    call.give(elementwise(call, "silu", {x}));
    return true;
  }
  return false;
}

void multiply(Call& call) {
  if (!give_gate(call)) binary<product_of>(call);
}

// A constant is multiplied by only where that is the very quotient: 1 / 3 is not what is near it.
Value divided(Call& call, const Value& a, const Value& b) {
  if (b.constant && is_floating(b.element)) {
    const Constant divisor = as_floats(*b.constant);
    int exponent = 0;
    const bool is_exact = std::ranges::all_of(*divisor.floats, [&](float x) {
      return std::isnormal(x) && std::isnormal(1 / x) && std::abs(std::frexp(x, &exponent)) == 0.5F;
    });
    if (is_exact) {
      Constant factor = divisor;
      std::vector<float> values = *divisor.floats;
      std::ranges::transform(values, values.begin(), [](float x) { return 1 / x; });
      factor.floats = std::make_shared<const std::vector<float>>(std::move(values));
      return product_of(call, a, constant_value(std::move(factor)));
    }
  }
  return quotient_of(call, a, b);
}

// Two at a time, data first.
Value with_constants_last(Call& call, Value (*step)(Call&, const Value&, const Value&)) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < call.count(); ++i) values.push_back(operand(call, i));
  std::stable_partition(values.begin(), values.end(), [](const Value& one) { return one.constant == nullptr; });
  Value result = values.front();
  for (std::size_t i = 1; i < values.size(); ++i) result = step(call, result, values[i]);
  return result;
}

void sum(Call& call) { call.give(with_constants_last(call, sum_of)); }

void mean(Call& call) {
  const Value all = with_constants_last(call, sum_of);
  call.give(call.count() == 1 ? all : quotient_of(call, all, number(static_cast<float>(call.count()))));
}

Value larger_of(Call& call, const Value& a, const Value& b) {
  Value y = elementwise(call, "maximum", {a, b});
  y.element = a.element;
  return y;
}
Value smaller_of(Call& call, const Value& a, const Value& b) {
  Value y = elementwise(call, "minimum", {a, b});
  y.element = a.element;
  return y;
}
void maximum(Call& call) { call.give(with_constants_last(call, larger_of)); }
void minimum(Call& call) { call.give(with_constants_last(call, smaller_of)); }

void negate(Call& call) {
  const Value& x = call.data_anywhere(0);
  call.give(is_floating(x.element) ? product_of(call, x, number(-1)) : difference_of(call, number(0), x));
}

// One exponent for all by the layer, whose gradient is defined wherever the power is.
Value power_of(Call& call, const Value& a, const Value& b) {
  Value y;
  constexpr double kMost = 1000;
  const bool is_number =
      b.constant && checked_count(b.constant->shape) == 1 && !a.constant && b.constant->shape.size() <= a.shape.size();
  const double exponent = is_number ? static_cast<double>(as_floats(*b.constant).floats->front()) : 0;
  if (is_number && std::abs(exponent) <= kMost) {
    y = elementwise(call, "power", {a}, {{"exponent", {text(exponent)}}});
  } else {
    y = elementwise_op(call, "pow", {a, b});
  }
  y.element = a.element;
  return y;
}

// With integers: the rest of a division, which has the sign of the divisor, or with fmod of the dividend.
Value rest_of(Call& call, const Value& a, const Value& b) {
  const Element element = a.constant ? b.element : a.element;
  if (is_floating(element))
    throw Unsupported("takes the rest of a division of floats, which no layer computes exactly");
  const char* const mode = call.integer("fmod", 0) != 0 ? "trunc" : "floor";
  const Value whole = elementwise(call, "round", {elementwise(call, "divide", {a, b})}, {{"mode", {mode}}});
  Value y = elementwise(call, "subtract", {a, elementwise(call, "multiply", {whole, b})});
  y.element = element;
  return y;
}

// x * slope where x is below 0.
Value leaky(Call& call, const Value& x, const Value& slope) {
  return choice_of(call, comparison_of(call, "less", x, number(0)), product_of(call, x, slope), x);
}

void prelu(Call& call) {
  const Value& x = call.data_anywhere(0);
  const Value& slope = call.input(1);
  // A number for each channel is [C, 1, 1] of rows [C, H, W].
  constexpr int64_t kByChannel = 6;  // up to this opset [C] is that
  if (!slope.constant || is_placed(x)) return call.give(leaky(call, x, slope));
  const Constant constant = as_floats(*slope.constant);
  const Shape row = row_of(x);
  const auto count = static_cast<int64_t>(constant.floats->size());
  const std::size_t rank = constant.shape.size();
  const bool by_channel =
      !row.empty() && count == row[0] &&
      (call.opset() <= kByChannel || (rank >= row.size() && constant.shape[rank - row.size()] == row[0]));
  if (count != 1 && !by_channel) return call.give(leaky(call, x, slope));
  const bool channels = count != 1;
  const Value y = call.layer("prelu", {&x}, {{"channels", {text(channels)}}}, row);
  call.set_tensor(y, "weight", {channels ? row[0] : 1}, constant);
  call.give(y);
}

}  // namespace

std::vector<OpRow> elementwise_rows() {
  return {{"Add", 6, binary<sum_of>},
          {"Sub", 6, binary<difference_of>},
          {"Mul", 6, multiply},
          {"Div", 6, binary<divided>},
          {"Mod", 10, binary<rest_of>},
          {"Pow", 6, binary<power_of>},
          {"Sum", 6, sum},
          {"Mean", 6, mean},
          {"Max", 6, maximum},
          {"Min", 6, minimum},
          {"Neg", 6, negate},
          {"PRelu", 6, prelu}};
}

}  // namespace gpunn::interchange
