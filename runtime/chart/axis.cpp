#include "chart/axis.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace gpunn::chart {

namespace {

// The smallest of 1, 2 and 5 times a power of ten that is not below `step`.
double round_step(double step) {
  const double power = std::pow(10.0, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (step <= factor * power * (1 + 1e-9)) return factor * power;
  }
  return 10 * power;
}

// As many decimals as the step has.
std::string label(double value, double step) {
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 12);
  const double rounded = std::abs(value) < step * 1e-9 ? 0 : value;
  const double largest = std::abs(rounded);
  if (largest >= 1e7 || (largest > 0 && decimals > 6)) return fmt::format("{:g}", rounded);
  return fmt::format("{:.{}f}", rounded, decimals);
}

Axis linear(double low, double high, int wanted, bool whole) {
  // Nothing that a label could tell apart counts as equal.
  if (high - low <= std::max(1e-9 * std::max(std::abs(low), std::abs(high)), 1e-300)) {
    const double room = low == 0 ? 1 : std::abs(low) / 10;
    low -= whole ? std::max(room, 1.0) : room;
    high += whole ? std::max(room, 1.0) : room;
  }
  double step = round_step((high - low) / std::max(wanted, 1));
  if (whole) step = std::max(step, 1.0);
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  Axis axis{Scale::linear, first * step, last * step, {}};
  for (double i = first; i <= last; ++i) axis.ticks.push_back({i * step, label(i * step, step)});
  return axis;
}

Axis logarithmic(double low, double high) {
  if (high <= low * (1 + 1e-9)) {
    low /= 2;
    high *= 2;
  }
  const double first = std::floor(std::log10(low)), last = std::ceil(std::log10(high));
  const bool every_decade_alone = last - first > 3;
  std::vector<double> values;
  for (double decade = first; decade <= last; ++decade) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor == 1 || !every_decade_alone) values.push_back(factor * std::pow(10.0, decade));
    }
  }
  // From the last tick that is not above the low end to the first that is not below the high one.
  const double slack = 1 + 1e-9;
  auto begin = std::upper_bound(values.begin(), values.end(), low * slack);
  if (begin != values.begin()) --begin;
  auto end = std::lower_bound(begin, values.end(), high / slack);
  if (end != values.end()) ++end;
  Axis axis{Scale::logarithmic, *begin, *(end - 1), {}};
  const auto skip = static_cast<std::ptrdiff_t>(std::max(1.0, std::ceil(static_cast<double>(end - begin) / 9)));
  for (auto value = begin; value < end; value += skip) axis.ticks.push_back({*value, fmt::format("{:g}", *value)});
  return axis;
}

}  // namespace

double Axis::share(double value) const {
  if (scale == Scale::linear) return (value - low) / (high - low);
  return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
}

Axis make_axis(Scale scale, double low, double high, int wanted, bool whole) {
  return scale == Scale::logarithmic ? logarithmic(low, high) : linear(low, high, wanted, whole);
}

}  // namespace gpunn::chart
