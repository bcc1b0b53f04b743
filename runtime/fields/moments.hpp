#pragma once

#include <gpunn/field.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace gpunn::fields {

// The numbers of a channel or column. Each step is computed relative to the lowest number. So an offset that all
// numbers can take on exactly changes `low` and `high`, and not one bit of the other members.
struct Moments {
  double low = 0, high = 0;
  double above_low = 0;  // mean - low
  double stddev = 0;
  double mean() const { return low + above_low; }
  // The number that models subtract: the mean, rounded to 2^-20 of the deviation. The rounding makes `low` plus the
  // distance exact, so that the differences do not depend on an offset either. This holds for a deviation above 2^-32
  // of the offset.
  double centre() const;
  // The number that models divide by: the deviation. A column that is constant, apart from rounding in f64, has 1.
  double unit() const;
};

// Moments by channel of numbers [rows, channels, ...] in f32 or f64.
std::vector<Moments> moments_of(const TensorType& type, std::span<const std::byte> values);

// Statistics by channel of numbers [rows, channels, ...] in u8, f32 or f64.
std::vector<ChannelSummary> summaries_of(const TensorType& type, std::span<const std::byte> values);

inline ChannelSummary summary_of(const Moments& moments) {
  return {.min = moments.low, .max = moments.high, .mean = moments.mean(), .stddev = moments.stddev};
}

}  // namespace gpunn::fields
