#include "data/images/bicubic.hpp"

#include <algorithm>
#include <cmath>

namespace gpunn::data {

namespace {

// Keys' cubic convolution kernel with a = -0.5.
double cubic(double x) {
  x = std::abs(x);
  if (x <= 1) return (1.5 * x - 2.5) * x * x + 1;
  if (x <= 2) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
  return 0;
}

// What the elements of a line become: element i of the result is the sum over k of weight[i * taps + k] times the
// element from[i * taps + k].
struct Line {
  int64_t size = 0;
  std::size_t taps = 0;
  std::vector<std::size_t> from;
  std::vector<double> weight;
};

Line line_of(int64_t size, double factor) {
  // Where it shrinks, the kernel is stretched to the distance of two results.
  const double stretch = std::min(factor, 1.0), width = 4 / stretch;
  Line line;
  line.size = resized_side(size, factor);
  line.taps = static_cast<std::size_t>(std::ceil(width)) + 2;
  for (int64_t i = 0; i < line.size; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) / factor - 0.5;
    const auto first = static_cast<int64_t>(std::floor(centre - width / 2));
    std::vector<double> weights;
    double sum = 0;
    for (std::size_t k = 0; k < line.taps; ++k) {
      const int64_t at = first + static_cast<int64_t>(k);
      weights.push_back(cubic(stretch * (centre - static_cast<double>(at))));
      sum += weights.back();
      const int64_t period = 2 * size, turned = ((at % period) + period) % period;
      line.from.push_back(static_cast<std::size_t>(turned < size ? turned : period - 1 - turned));
    }
    for (const double one : weights) line.weight.push_back(one / sum);
  }
  return line;
}

}  // namespace

int64_t resized_side(int64_t side, double factor) {
  // Factors such as 1/3 are no exact numbers.
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(static_cast<double>(side) * factor - 1e-9)));
}

Planes resize_bicubic(const Planes& image, double factor) {
  const Line rows = line_of(image.height, factor), columns = line_of(image.width, factor);
  const auto width = static_cast<std::size_t>(image.width);
  const auto result_width = static_cast<std::size_t>(columns.size);
  Planes result{image.channels, rows.size, columns.size};
  result.values.reserve(static_cast<std::size_t>(image.channels) * result.plane());
  std::vector<double> row(width);
  for (int64_t c = 0; c < image.channels; ++c) {
    const std::span<const float> plane = image.channel(c);
    for (std::size_t y = 0; y < static_cast<std::size_t>(rows.size); ++y) {
      std::ranges::fill(row, 0.0);
      for (std::size_t k = y * rows.taps; k < (y + 1) * rows.taps; ++k) {
        const double weight = rows.weight[k];
        if (weight == 0) continue;
        const float* const source = plane.data() + rows.from[k] * width;
        for (std::size_t x = 0; x < width; ++x) row[x] += weight * static_cast<double>(source[x]);
      }
      for (std::size_t x = 0; x < result_width; ++x) {
        double sum = 0;
        for (std::size_t k = x * columns.taps; k < (x + 1) * columns.taps; ++k) {
          sum += columns.weight[k] * row[columns.from[k]];
        }
        result.values.push_back(static_cast<float>(sum));
      }
    }
  }
  return result;
}

}  // namespace gpunn::data
