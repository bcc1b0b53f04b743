#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "conformance/error_scales.hpp"

namespace gpunn::conformance {

namespace {

// Roundings of exp, tanh or erf and what surrounds them; vectorised ones are good to a few units.
constexpr double kActivationError = 8;
// Results below the smallest normal number may be flushed to 0: 2^-126 in units of 2^-24.
const double kFlushed = std::ldexp(1.0, -102);

// scale(dy, v, reference) by element; v is x or y.
template <class Scale>
std::vector<double> by_element(const Evaluation& e, std::size_t output, Scale scale) {
  const std::vector<double>& y = e.reference.at(output).values;
  std::vector<double> result(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double first = e.inputs.at(0).values.at(i);
    const double value = scale(first, e.inputs.size() > 1 ? e.inputs.at(1).values.at(i) : first, y[i]);
    result[i] = std::isfinite(value) ? value : 0;  // infinities and NaN are exact
  }
  return result;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

std::vector<double> sigmoid_scale(const Evaluation& e, std::size_t output) {
  return by_element(e, output, [](double, double, double y) { return kActivationError * std::abs(y) + kFlushed; });
}

// 1 - y^2 of a rounded y^2.
std::vector<double> tanh_backward_scale(const Evaluation& e, std::size_t output) {
  return by_element(e, output,
                    [](double dy, double y, double) { return std::abs(dy) * (2 * y * y + 4 * std::abs(1 - y * y)); });
}

// Where the factor of x vanishes it is flushed, and x is not.
std::vector<double> silu_scale(const Evaluation& e, std::size_t output) {
  return by_element(e, output, [](double, double x, double y) {
    return (kActivationError + 1) * std::abs(y) + kFlushed * (1 + std::min(std::abs(x), 200.0));
  });
}

// In 1 + x (1 - s) the two terms may cancel, and 1 - s is off by a unit.
std::vector<double> silu_backward_scale(const Evaluation& e, std::size_t output) {
  return by_element(e, output, [](double dy, double x, double) {
    const double reach = std::min(std::abs(x), 200.0);
    return std::abs(dy) * (1 + reach) * (kActivationError * sigmoid(x) + kFlushed);
  });
}

// x times (1 + erf) / 2, a sum that may cancel.
std::vector<double> gelu_scale(const Evaluation& e, std::size_t output) {
  return by_element(e, output, [](double, double x, double) {
    return x < -40 ? kFlushed * (1 + std::min(-x, 1e30)) : kActivationError * std::abs(x);
  });
}

// P + x P': P is off by a few units, and so is 1 - tanh^2, which the slope of tanh's argument multiplies.
std::vector<double> gelu_backward_scale(const Evaluation& e, std::size_t output) {
  const bool tanh = e.signature.attrs.as<gpunn_gelu_attrs>().tanh != 0;
  return by_element(e, output, [=](double dy, double x, double) {
    const double reach = std::min(std::abs(x), 16.0);
    const double slope = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * reach * reach);
    return std::abs(dy) * (2 * kActivationError + (tanh ? 2 * reach * slope : 0));
  });
}

}  // namespace gpunn::conformance
