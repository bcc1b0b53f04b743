#include "fields/moments.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace gpunn::fields {

namespace {

// Far below the rounding of a standardised number to f32, and far above the rounding of a mean to f64.
constexpr int kCentreBits = 20;
// Numbers that differ by less were equal before they were computed with.
constexpr double kRoundingSteps = 4;

template <class T>
std::vector<Moments> moments_of_numbers(const TensorType& type, std::span<const std::byte> values) {
  const auto rows = static_cast<std::size_t>(type.shape.at(0));
  const std::size_t channels = type.shape.size() > 1 ? static_cast<std::size_t>(type.shape[1]) : 1;
  const std::size_t count = values.size() / sizeof(T);
  if (rows == 0 || channels == 0 || count == 0) return std::vector<Moments>(rows == 0 ? 0 : channels);
  const std::size_t inner = count / rows / channels;
  const auto for_each = [&](const auto& take) {
    const std::byte* at = values.data();
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t channel = 0; channel < channels; ++channel) {
        for (std::size_t i = 0; i < inner; ++i, at += sizeof(T)) {
          T number;  // the caller's memory may lie at any address
          std::memcpy(&number, at, sizeof(T));
          take(channel, static_cast<double>(number));
        }
      }
    }
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<Moments> moments(channels, Moments{.low = kInfinity, .high = -kInfinity});
  for_each([&](std::size_t channel, double number) {
    moments[channel].low = std::min(moments[channel].low, number);
    moments[channel].high = std::max(moments[channel].high, number);
  });
  const auto total = static_cast<double>(rows * inner);
  for_each([&](std::size_t channel, double number) { moments[channel].above_low += number - moments[channel].low; });
  for (Moments& one : moments) one.above_low /= total;
  for_each([&](std::size_t channel, double number) {
    const double distance = number - moments[channel].low - moments[channel].above_low;
    moments[channel].stddev += distance * distance;
  });
  for (Moments& one : moments) one.stddev = std::sqrt(one.stddev / total);
  return moments;
}

// From how often each of the 256 values occurs: exact, whatever the number of bytes.
ChannelSummary summary_of_counts(const std::array<uint64_t, 256>& counts) {
  ChannelSummary summary;
  double total = 0, sum = 0, squares = 0;
  bool any = false;
  for (std::size_t value = 0; value < counts.size(); ++value) {
    if (counts[value] == 0) continue;
    const auto v = static_cast<double>(value);
    const auto n = static_cast<double>(counts[value]);
    if (!any) summary.min = v;
    any = true;
    summary.max = v;
    total += n;
    sum += n * v;
    squares += n * v * v;
  }
  if (!any) return summary;
  summary.mean = sum / total;
  summary.stddev = std::sqrt(std::max(0.0, squares / total - summary.mean * summary.mean));
  return summary;
}

std::vector<ChannelSummary> summaries_of_bytes(const TensorType& type, std::span<const std::byte> values) {
  const std::size_t channels = type.shape.size() > 1 ? static_cast<std::size_t>(type.shape[1]) : 1;
  const auto rows = static_cast<std::size_t>(type.shape.at(0));
  const std::size_t inner = values.size() / std::max<std::size_t>(rows * channels, 1);
  std::vector<ChannelSummary> summaries;
  for (std::size_t channel = 0; channel < channels && !values.empty(); ++channel) {
    std::array<uint64_t, 256> counts = {};
    for (std::size_t row = 0; row < rows; ++row) {
      for (const std::byte value : values.subspan((row * channels + channel) * inner, inner)) {
        ++counts[std::to_integer<std::size_t>(value)];
      }
    }
    summaries.push_back(summary_of_counts(counts));
  }
  return summaries;
}

}  // namespace

double Moments::centre() const {
  if (!(stddev > 0)) return mean();
  const double grid = std::ldexp(1.0, std::ilogb(stddev) - kCentreBits);
  return low + std::nearbyint(above_low / grid) * grid;
}

double Moments::unit() const {
  const double magnitude = std::max(std::abs(low), std::abs(high));
  const bool varies = high - low > kRoundingSteps * std::numeric_limits<double>::epsilon() * magnitude;
  return varies && stddev > 0 ? stddev : 1;
}

std::vector<Moments> moments_of(const TensorType& type, std::span<const std::byte> values) {
  return type.dtype == DType::f64 ? moments_of_numbers<double>(type, values) : moments_of_numbers<float>(type, values);
}

std::vector<ChannelSummary> summaries_of(const TensorType& type, std::span<const std::byte> values) {
  if (type.dtype == DType::u8) return summaries_of_bytes(type, values);
  std::vector<ChannelSummary> summaries;
  for (const Moments& one : moments_of(type, values)) summaries.push_back(summary_of(one));
  return summaries;
}

}  // namespace gpunn::fields
