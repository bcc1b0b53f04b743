#include "data/digits/pen.hpp"

#include <algorithm>
#include <cmath>

namespace gpunn::data {

namespace {

struct Segment {
  Point from, along;          // along = to - from
  double inverse_square = 0;  // 1 / |along|^2, 0 for a dot

  double square_distance(double x, double y) const {
    const double dx = x - from.x;
    const double dy = y - from.y;
    const double t = std::clamp((dx * along.x + dy * along.y) * inverse_square, 0.0, 1.0);
    const double ex = dx - t * along.x;
    const double ey = dy - t * along.y;
    return ex * ex + ey * ey;
  }
};

int to_pixel(double coordinate) { return static_cast<int>(std::clamp(std::floor(coordinate), 0.0, kDigitSize - 1.0)); }

}  // namespace

DigitImage draw(const std::vector<Polyline>& lines, double half_width, double peak) {
  const double reach = half_width + 0.5;
  std::array<double, std::size_t{kDigitSize}* kDigitSize> nearest = {};
  nearest.fill(reach * reach);
  for (const Polyline& line : lines) {
    for (std::size_t i = 1; i < line.size(); ++i) {
      const Point& a = line[i - 1];
      const Point& b = line[i];
      Segment segment{a, {b.x - a.x, b.y - a.y}};
      const double square = segment.along.x * segment.along.x + segment.along.y * segment.along.y;
      if (square > 0) segment.inverse_square = 1 / square;
      const int left = to_pixel(std::min(a.x, b.x) - reach);
      const int right = to_pixel(std::max(a.x, b.x) + reach);
      const int bottom = to_pixel(std::max(a.y, b.y) + reach);
      for (int y = to_pixel(std::min(a.y, b.y) - reach); y <= bottom; ++y) {
        double* row = nearest.data() + y * kDigitSize;
        for (int x = left; x <= right; ++x) row[x] = std::min(row[x], segment.square_distance(x + 0.5, y + 0.5));
      }
    }
  }
  DigitImage image = {};
  for (std::size_t i = 0; i < image.size(); ++i) {
    const double covered = std::clamp(reach - std::sqrt(nearest[i]), 0.0, 1.0);
    image[i] = static_cast<uint8_t>(std::clamp(peak * covered + 0.5, 0.0, 255.0));
  }
  return image;
}

void add_noise(DigitImage& image, double amplitude, PhiloxSource& random) {
  for (std::size_t i = 0; i < image.size(); i += 2) {
    // Two pixels a word; the sum of two bytes is a triangle around 255.
    const uint32_t word = random.word();
    for (std::size_t k = 0; k < 2; ++k) {
      const uint32_t part = word >> (16 * k);
      const double sum = static_cast<double>((part & 255U) + (part >> 8 & 255U)) - 255;
      const double value = image[i + k] + amplitude * sum / 255;
      image[i + k] = static_cast<uint8_t>(std::clamp(value + 0.5, 0.0, 255.0));
    }
  }
}

}  // namespace gpunn::data
