#include "session/check/parameter_comparison.hpp"

#include <cmath>
#include <limits>

#include "ops/comparison.hpp"
#include "ops/tolerance.hpp"

namespace gpunn::training {

namespace {

// A whole step rounds differently on two backends, and where a gradient is nothing but rounding Adam makes a full step
// of it. So only a difference that is a good part of the step itself departs.
constexpr double kMostOfAStep = 0.25;
// In half precision more gradients are nothing but rounding.
constexpr double kMostOfAHalfStep = 0.5;

}  // namespace

ParameterDifference compare_parameters(std::span<const float> before, std::span<const float> first,
                                       std::span<const float> second, bool half) {
  ParameterDifference result;
  double apart = 0, moved = 0, size = 0;
  bool finite = true;
  for (std::size_t i = 0; i < first.size(); ++i) {
    // A NaN of the first is a divergence, which the trainer reports.
    finite = finite && std::isfinite(first[i]);
    double difference = std::abs(static_cast<double>(first[i]) - second[i]);
    if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
    const double movement = static_cast<double>(first[i]) - before[i];
    apart += difference * difference;
    moved += movement * movement;
    size += static_cast<double>(first[i]) * first[i];
    if (difference > result.largest) {
      result.largest = difference;
      result.element = i;
    }
  }
  result.apart = std::sqrt(apart);
  result.moved = std::sqrt(moved);
  // Of a step near nothing, as the first ones of a warm-up are, only the rounding of the sum is left.
  const double rounding = 4 * ops::unit_roundoff(DType::f32) * std::sqrt(size);
  result.departs = finite && result.apart > (half ? kMostOfAHalfStep : kMostOfAStep) * result.moved + rounding;
  return result;
}

std::string parameter_element(const ParameterLayout& layout, std::size_t element) {
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    const nn::Parameter& parameter = layout.parameters[i];
    const int64_t place = static_cast<int64_t>(element) - layout.offset[i];
    if (place < 0 || place >= element_count(parameter.shape)) continue;
    return parameter.name + ops::index_text(parameter.shape, static_cast<std::size_t>(place));
  }
  return "element " + std::to_string(element) + " of the flat parameters, in no tensor";
}

}  // namespace gpunn::training
