// Computes functions of one value, element by element.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "interchange/onnx/constants/evaluator.hpp"
#include "interchange/onnx/constants/sizes.hpp"

namespace gpunn::interchange::constants {

namespace {

template <class Function>
void map_floats(Call& call, Function function) {
  const Constant& x = call.constant(0, "the data");
  require_floating(x);
  call.importer().take_room(x.shape);
  std::vector<double> values = numbers_of(x);
  std::ranges::transform(values, values.begin(), function);
  Constant result = rounded_constant(x.element, x.shape, std::move(values));
  result.trained = x.trained;
  call.give_constant(std::move(result));
}

template <class Function>
void map_integers(Call& call, Function function) {
  const Constant& x = call.constant(0, "the data");
  call.importer().take_room(x.shape);
  std::vector<Size> values = x.integers;
  std::ranges::transform(values, values.begin(), [&](Size one) { return function(x.element, one); });
  call.give_constant(integers_constant(x.element, x.shape, std::move(values)));
}

template <class Function>
void test_floats(Call& call, Function function) {
  const Constant& x = call.constant(0, "the data");
  if (!is_floating(x.element)) require_floating(x);
  call.importer().take_room(x.shape);
  std::vector<bool> truths(x.count());
  for (std::size_t i = 0; i < truths.size(); ++i) truths[i] = function(x.number(i));
  call.give_constant(truths_constant(x.shape, truths));
}

template <double (*function)(double)>
void of_floats(Call& call) {
  map_floats(call, function);
}

template <double (*of_float)(double), Size (*of_integer)(Element, Size)>
void of_numbers(Call& call) {
  const Constant& x = call.constant(0, "the data");
  if (is_floating(x.element)) return map_floats(call, of_float);
  require_integers(x);
  map_integers(call, of_integer);
}

double negative(double x) { return -x; }
double sign(double x) { return std::isnan(x) ? x : static_cast<double>(x > 0) - static_cast<double>(x < 0); }
double positive_part(double x) { return x < 0 ? 0 : x; }
double inverse(double x) { return 1 / x; }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double softsign(double x) { return x / (1 + std::abs(x)); }
double mish(double x) { return x * std::tanh(softplus(x)); }
double hard_swish(double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }

Size negative_size(Element element, Size x) { return subtract_sizes(element, {0, false}, x); }
Size sign_of_size(Element element, Size x) {
  if (element == Element::u64) return {x.factor != 0 ? 1 : 0, false};
  return {static_cast<int64_t>(x.factor > 0) - static_cast<int64_t>(x.factor < 0), false};
}
Size positive_size(Element element, Size x) { return x.factor < 0 && element != Element::u64 ? Size{0, false} : x; }

void negate_truth(Call& call) {
  require_truths(call.constant(0, "the data"));
  map_integers(call, [](Element, Size x) { return Size{x.factor == 0 ? 1 : 0, false}; });
}

void negate_bits(Call& call) {
  require_integers(call.constant(0, "the data"));
  map_integers(call, [](Element element, Size x) {
    if (x.of_batch) throw Unsupported("computes with the bits of the size of the batch");
    return Size{wrapped(element, ~x.factor), false};
  });
}

void leaky_relu(Call& call) {
  map_floats(call, [alpha = call.number("alpha", 0.01F)](double x) { return x < 0 ? alpha * x : x; });
}

void thresholded_relu(Call& call) {
  map_floats(call, [alpha = call.number("alpha", 1)](double x) { return x > alpha ? x : 0; });
}

void elu(Call& call) {
  map_floats(call, [alpha = call.number("alpha", 1)](double x) { return x < 0 ? alpha * std::expm1(x) : x; });
}

void celu(Call& call) {
  map_floats(call, [alpha = call.number("alpha", 1)](double x) { return x < 0 ? alpha * std::expm1(x / alpha) : x; });
}

void selu(Call& call) {
  const double alpha = call.number("alpha", 1.67326319217681884765625),
               gamma = call.number("gamma", 1.05070102214813232421875);
  map_floats(call, [=](double x) { return gamma * (x <= 0 ? alpha * std::expm1(x) : x); });
}

void hard_sigmoid(Call& call) {
  const double alpha = call.number("alpha", 0.2F), beta = call.number("beta", 0.5);
  map_floats(call, [=](double x) { return std::clamp(alpha * x + beta, 0.0, 1.0); });
}

void shrink(Call& call) {
  const double bias = call.number("bias", 0), limit = call.number("lambd", 0.5);
  map_floats(call, [=](double x) { return x < -limit ? x + bias : x > limit ? x - bias : 0; });
}

void swish(Call& call) {
  map_floats(call, [alpha = call.number("alpha", 1)](double x) { return x * sigmoid(alpha * x); });
}

void gelu(Call& call) {
  const std::string form = call.word("approximate", "none");
  if (form != "none" && form != "tanh") throw Unsupported("is approximated by " + form);
  map_floats(call, [is_exact = form == "none"](double x) {
    if (is_exact) return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
    constexpr double kCubic = 0.044715;
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + kCubic * x * x * x)));
  });
}

void is_nan(Call& call) {
  test_floats(call, [](double x) { return std::isnan(x); });
}

void is_infinite(Call& call) {
  const bool below = call.integer("detect_negative", 1) != 0, above = call.integer("detect_positive", 1) != 0;
  test_floats(call, [=](double x) { return std::isinf(x) && (x < 0 ? below : above); });
}

}  // namespace

std::vector<EvaluatorRow> function_evaluators() {
  return {
      {"Abs", 1, of_numbers<std::abs, absolute_size>},
      {"Acos", 7, of_floats<std::acos>},
      {"Acosh", 9, of_floats<std::acosh>},
      {"Asin", 7, of_floats<std::asin>},
      {"Asinh", 9, of_floats<std::asinh>},
      {"Atan", 7, of_floats<std::atan>},
      {"Atanh", 9, of_floats<std::atanh>},
      {"BitwiseNot", 18, negate_bits},
      {"Ceil", 1, of_floats<std::ceil>},
      {"Celu", 12, celu},
      {"Cos", 7, of_floats<std::cos>},
      {"Cosh", 9, of_floats<std::cosh>},
      {"Elu", 1, elu},
      {"Erf", 9, of_floats<std::erf>},
      {"Erfc", 1, of_floats<std::erfc>},  // which tf2onnx writes
      {"Exp", 1, of_floats<std::exp>},
      {"Floor", 1, of_floats<std::floor>},
      {"Gelu", 20, gelu},
      {"HardSigmoid", 1, hard_sigmoid},
      {"HardSwish", 14, of_floats<hard_swish>},
      {"IsInf", 10, is_infinite},
      {"IsNaN", 9, is_nan},
      {"LeakyRelu", 1, leaky_relu},
      {"Log", 1, of_floats<std::log>},
      {"Mish", 18, of_floats<mish>},
      {"Neg", 1, of_numbers<negative, negative_size>},
      {"Not", 1, negate_truth},
      {"Reciprocal", 1, of_floats<inverse>},
      {"Relu", 1, of_numbers<positive_part, positive_size>},
      {"Round", 11, of_floats<std::nearbyint>},
      {"Selu", 1, selu},
      {"Shrink", 9, shrink},
      {"Sigmoid", 1, of_floats<sigmoid>},
      {"Sign", 9, of_numbers<sign, sign_of_size>},
      {"Sin", 7, of_floats<std::sin>},
      {"Sinh", 9, of_floats<std::sinh>},
      {"Softplus", 1, of_floats<softplus>},
      {"Softsign", 1, of_floats<softsign>},
      {"Sqrt", 1, of_floats<std::sqrt>},
      {"Swish", 24, swish},
      {"Tan", 7, of_floats<std::tan>},
      {"Tanh", 1, of_floats<std::tanh>},
      {"ThresholdedRelu", 10, thresholded_relu},
  };
}

}  // namespace gpunn::interchange::constants
