#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/error_scales.hpp"

namespace gpunn::conformance {

namespace {

constexpr double kPowerError = 8;  // roundings of a power and what surrounds it

// LOCAL_RESPONSE_NORM with its tensors as [images][channels][inner].
struct ResponseScales {
  std::size_t channels = 0, inner = 1;
  gpunn_local_response_norm_attrs attrs{};
  const std::vector<double>& x;

  ResponseScales(const Evaluation& e, std::size_t input)
      : attrs(e.signature.attrs.as<gpunn_local_response_norm_attrs>()), x(e.inputs.at(input).values) {
    const Shape& shape = e.inputs[input].type.shape;
    channels = static_cast<std::size_t>(shape.at(1));
    for (std::size_t i = 2; i < shape.size(); ++i) inner *= static_cast<std::size_t>(shape[i]);
  }

  // The sum of value(element) over `before` channels before the element's, its own, and `behind` channels behind it.
  template <class Value>
  double over_neighbours(std::size_t element, std::size_t before, std::size_t behind, const Value& value) const {
    const std::size_t channel = element / inner % channels, first = channel - std::min(channel, before);
    const std::size_t last = std::min(channel + behind, channels - 1);
    double sum = 0;
    for (std::size_t c = first; c <= last; ++c) sum += value(element - channel * inner + c * inner);
    return sum;
  }

  std::size_t left() const { return static_cast<std::size_t>(attrs.size / 2); }
  std::size_t right() const { return static_cast<std::size_t>((attrs.size - 1) / 2); }

  double denominator(std::size_t element) const {
    const double squares = over_neighbours(element, left(), right(), [&](std::size_t i) { return x[i] * x[i]; });
    return attrs.k + static_cast<double>(attrs.alpha) / attrs.size * squares;
  }

  // Relative, of s^exponent: s is a sum of positive terms, and its logarithm is rounded where the power is made by one.
  double power_error(double s, double exponent) const {
    return kPowerError + std::abs(exponent) * (accumulation(attrs.size) + 2 * std::abs(std::log(s)));
  }
};

}  // namespace

std::vector<double> local_response_norm_scale(const Evaluation& e, std::size_t output) {
  const ResponseScales response(e, 0);
  const std::vector<double>& y = e.reference.at(output).values;
  std::vector<double> scale(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    scale[i] = std::abs(y[i]) * response.power_error(response.denominator(i), response.attrs.beta);
  }
  return scale;
}

// dx = dy s^-beta - 2 beta alpha / size x (sum of dy x s^(-beta - 1)).
std::vector<double> local_response_norm_backward_scale(const Evaluation& e, std::size_t output) {
  const ResponseScales response(e, 1);
  const std::vector<double>&dy = e.inputs.at(0).values, &x = e.inputs.at(1).values;
  const double beta = response.attrs.beta, alpha = response.attrs.alpha, size = response.attrs.size;
  std::vector<double> denominator(x.size()), scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < x.size(); ++i) denominator[i] = response.denominator(i);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto term = [&](std::size_t c) {
      const double s = denominator[c];
      return std::abs(dy[c] * x[c]) * std::pow(s, -beta - 1) * response.power_error(s, beta + 1);
    };
    const double sum = response.over_neighbours(i, response.right(), response.left(), term);
    scale[i] = std::abs(dy[i]) * std::pow(denominator[i], -beta) * response.power_error(denominator[i], beta) +
               std::abs(2 * beta * alpha / size * x[i]) * sum * accumulation(size);
  }
  return scale;
}

}  // namespace gpunn::conformance
