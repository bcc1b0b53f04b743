#pragma once

#include <algorithm>
#include <cmath>

namespace gpunn {

// Significant digits that show a number of a column with this deviation. A number far from 0 needs more than the
// `usual` ones: its first digits are those of the column's offset.
inline int digits_beyond(double number, double stddev, int usual) {
  constexpr double kNear = 10;  // deviations from 0
  constexpr int kDigitsOfF64 = 17, kLongestWhole = 15;
  const double size = std::abs(number);
  if (!(stddev > 0) || !std::isfinite(number) || size <= kNear * stddev) return usual;
  const int of_offset = static_cast<int>(std::ceil(std::log10(size / stddev / kNear)));
  const int whole = size < 1 ? 0 : static_cast<int>(std::floor(std::log10(size))) + 1;
  return std::min(kDigitsOfF64, std::max(usual + of_offset, whole <= kLongestWhole ? whole : 0));
}

}  // namespace gpunn
