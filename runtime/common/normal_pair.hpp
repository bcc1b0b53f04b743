#pragma once

#include <gpunn/random.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace gpunn {

// Two numbers of the standard normal distribution from two random words (Box and Muller, 1958), in double. Rounding
// them to f32 hides the differences between mathematical libraries.
inline std::array<double, 2> normal_pair(uint32_t first, uint32_t second) {
  const double radius = std::sqrt(-2.0 * std::log(static_cast<double>(gpunn_random_positive(first))));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(gpunn_random_unit(second));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace gpunn
