// Functions of each number by itself.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "interchange/onnx/constants/number_format.hpp"
#include "interchange/onnx/dimensions.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/operands.hpp"
#include "interchange/onnx/placement.hpp"

namespace gpunn::interchange {

namespace {

struct Function {
  std::string_view op;
  int64_t since;
  const char* layer;
  const char* key = "";  // of the layer, with its value
  const char* value = "";
};

// Operators that a layer computes as it is.
constexpr std::array kFunctions = {
    Function{"Relu", 6, "relu"},
    Function{"Sigmoid", 6, "sigmoid"},
    Function{"Tanh", 6, "tanh"},
    Function{"Softplus", 1, "softplus"},
    Function{"Softsign", 1, "softsign"},
    Function{"Mish", 18, "mish"},
    Function{"HardSwish", 14, "hard_swish"},
    Function{"Abs", 6, "abs"},
    Function{"Exp", 6, "exp"},
    Function{"Log", 6, "log"},
    Function{"Erf", 9, "erf"},
    Function{"Sqrt", 6, "power", "exponent", "0.5"},
    Function{"Reciprocal", 6, "power", "exponent", "-1"},
    Function{"Floor", 6, "round", "mode", "floor"},
    Function{"Ceil", 6, "round", "mode", "ceil"},
    Function{"Round", 11, "round", "mode", "nearest"},
    Function{"Sign", 9, "sign"},
    Function{"Sin", 7, "sin"},
    Function{"Cos", 7, "cos"},
    Function{"Tan", 7, "tan"},
    Function{"Asin", 7, "asin"},
    Function{"Acos", 7, "acos"},
    Function{"Atan", 7, "atan"},
    Function{"Sinh", 9, "sinh"},
    Function{"Cosh", 9, "cosh"},
    Function{"Asinh", 9, "asinh"},
    Function{"Acosh", 9, "acosh"},
    Function{"Atanh", 9, "atanh"},
};

const Function& function_of(const Call& call) {
  return *std::ranges::find(kFunctions, std::string_view(call.node().op), &Function::op);
}

Value mapped(Call& call, const char* layer, const Keys& keys = {}) {
  const Value& x = call.data_anywhere(0);
  Value y = elementwise(call, layer, {x}, keys);
  y.element = x.element;
  return y;
}

void plain_function(Call& call) {
  const Function& function = function_of(call);
  const bool has_key = *function.key != '\0';
  call.give(mapped(call, function.layer, has_key ? Keys{{function.key, {function.value}}} : Keys()));
}

void leaky_relu(Call& call) { call.give(mapped(call, "leaky_relu", {{"slope", {text(call.number("alpha", 0.01))}}})); }

void elu(Call& call) { call.give(mapped(call, "elu", {{"alpha", {text(call.number("alpha", 1))}}})); }
void celu(Call& call) { call.give(mapped(call, "celu", {{"alpha", {text(call.number("alpha", 1))}}})); }

// Of ONNX's own constants, which other ones than those of the paper replace at times.
void selu(Call& call) {
  constexpr double kAlpha = 1.67326319217681884765625, kScale = 1.05070102214813232421875, kNear = 1e-6;
  const double alpha = call.number("alpha", kAlpha), scale = call.number("gamma", kScale);
  if (std::abs(alpha - kAlpha) <= kNear && std::abs(scale - kScale) <= kNear) return call.give(mapped(call, "selu"));
  const Value y = mapped(call, "elu", {{"alpha", {text(alpha)}}});
  call.give(product_of(call, y, number(static_cast<float>(scale))));
}

// x * sigmoid(alpha * x).
void swish(Call& call) {
  const double alpha = call.number("alpha", 1);
  if (alpha == 1) return call.give(mapped(call, "silu"));
  const Value& x = call.data_anywhere(0);
  const Value gate = elementwise(call, "sigmoid", {product_of(call, x, number(static_cast<float>(alpha)))});
  call.give(product_of(call, x, gate));
}

void hard_sigmoid(Call& call) {
  call.give(mapped(call, "hard_sigmoid",
                   {{"slope", {text(call.number("alpha", 0.2))}}, {"offset", {text(call.number("beta", 0.5))}}}));
}

// 1 - erf(x). ONNX has no such operator; tf2onnx writes it for the GELU of Keras.
void erfc(Call& call) { call.give(difference_of(call, number(1), mapped(call, "erf"))); }

void gelu(Call& call) { call.give(mapped(call, "gelu", {{"approximate", {call.word("approximate", "none")}}})); }

void thresholded_relu(Call& call) {
  const Value& x = call.data_anywhere(0);
  const Value bound = number(static_cast<float>(call.number("alpha", 1)));
  call.give(choice_of(call, comparison_of(call, "greater", x, bound), x, number(0)));
}

void shrink(Call& call) {
  const Value& x = call.data_anywhere(0);
  const auto bias = static_cast<float>(call.number("bias", 0)), bound = static_cast<float>(call.number("lambd", 0.5));
  const Value below =
      choice_of(call, comparison_of(call, "less", x, number(-bound)), sum_of(call, x, number(bias)), number(0));
  call.give(
      choice_of(call, comparison_of(call, "greater", x, number(bound)), difference_of(call, x, number(bias)), below));
}

// A bound as a number, if layers can have it as one.
std::optional<double> finite(const Value& bound) {
  if (!bound.constant || checked_count(bound.constant->shape) != 1) return std::nullopt;
  const double value = as_floats(*bound.constant).floats->front();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// min(max(x, low), high). A bound that is not there is the lowest or the highest of all numbers.
// The largest number of a type, as layers hold it. Integers have none here: they are wrapped already.
float limit_of(Element element) {
  if (element == Element::f64) return std::numeric_limits<float>::infinity();
  return is_floating(element) ? static_cast<float>(largest_of(element)) : std::numeric_limits<float>::max();
}

void clip_between(Call& call, const std::optional<Value>& lower, const std::optional<Value>& upper) {
  const Value& x = call.data_anywhere(0);
  const float limit = limit_of(x.element);
  const Value low = lower.value_or(number(-limit)), high = upper.value_or(number(limit));
  const std::optional<double> least = finite(low), most = finite(high);
  Value y;
  if (!is_floating(x.element) && !lower && !upper) {
    y = x;
  } else if (least == 0.0 && most == 6.0) {
    y = elementwise(call, "relu6", {x});
  } else if (least && most && *least <= *most) {
    y = elementwise(call, "clamp", {x}, {{"low", {text(*least)}}, {"high", {text(*most)}}});
  } else {
    y = elementwise(call, "minimum", {elementwise(call, "maximum", {x, low}), high});
  }
  y.element = x.element;
  call.give(std::move(y));
}

void clip_by_attributes(Call& call) {
  // The defaults are the bounds of float, of which half precision has no such numbers.
  constexpr double kMost = std::numeric_limits<float>::max();
  const Element element = call.data_anywhere(0).element;
  const auto bound = [&](const char* name, double fallback) {
    return number(static_cast<float>(rounded(element, call.number(name, fallback))));
  };
  clip_between(call, bound("min", -kMost), bound("max", kMost));
}

void clip_by_inputs(Call& call) {
  const auto bound = [&](std::size_t i) { return call.has(i) ? std::optional(call.input(i)) : std::nullopt; };
  clip_between(call, bound(1), bound(2));
}

// Up to opset 12 over all dimensions from `axis` on together.
void over_classes(Call& call, const char* layer, int64_t fallback) {
  const Value& x = call.data_anywhere(0);
  if (x.shape.empty()) throw Unsupported("takes a number; expected a dimension of classes");
  const std::size_t axis = sound_dimension(call.integer("axis", fallback), x.shape.size());
  constexpr int64_t kOneDimension = 13;
  if (call.opset() >= kOneDimension || axis + 1 == x.shape.size()) return call.give(softmax_over(call, layer, x, axis));
  Sizes together(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  Size last{1, false};
  for (std::size_t i = axis; i < x.shape.size(); ++i) {
    last.of_batch = last.of_batch || x.shape[i].of_batch;
    last.factor *= x.shape[i].factor;
  }
  together.push_back(last);
  const std::optional<Value> flat = last.of_batch ? std::nullopt : regrouped(call, x, together);
  if (!flat) throw Unsupported("computes with different rows of the batch");
  const std::optional<Value> y = regrouped(call, softmax_over(call, layer, *flat, axis), x.shape);
  if (!y) throw Unsupported("does not give its rows in the order in which it takes them");
  call.give(*y);
}
void softmax_1(Call& call) { over_classes(call, "softmax", 1); }
void softmax_13(Call& call) { over_classes(call, "softmax", -1); }
void log_softmax_1(Call& call) { over_classes(call, "log_softmax", 1); }
void log_softmax_13(Call& call) { over_classes(call, "log_softmax", -1); }

}  // namespace

std::vector<OpRow> activation_rows() {
  std::vector<OpRow> rows = {
      {"LeakyRelu", 6, leaky_relu},
      {"Elu", 6, elu},
      {"Selu", 6, selu},
      {"Celu", 12, celu},
      {"HardSigmoid", 6, hard_sigmoid},
      {"Swish", 24, swish},
      {"Erfc", 6, erfc},
      {"Gelu", 20, gelu},
      {"ThresholdedRelu", 10, thresholded_relu},
      {"Shrink", 9, shrink},
      {"Clip", 6, clip_by_attributes},
      {"Clip", 11, clip_by_inputs},
      {"Softmax", 1, softmax_1},
      {"Softmax", 13, softmax_13},
      {"LogSoftmax", 1, log_softmax_1},
      {"LogSoftmax", 13, log_softmax_13},
  };
  for (const Function& function : kFunctions) rows.push_back({function.op, function.since, plain_function});
  return rows;
}

}  // namespace gpunn::interchange
