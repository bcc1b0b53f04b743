#include "data/images/planes.hpp"

#include <algorithm>
#include <cmath>

namespace gpunn::data {

uint8_t luma(uint8_t red, uint8_t green, uint8_t blue) {
  const double weighted = 65.481 * red + 128.553 * green + 24.966 * blue;
  return static_cast<uint8_t>(std::floor(16 + weighted / 255 + 0.5));
}

std::vector<uint8_t> to_bytes(std::span<const float> values) {
  std::vector<uint8_t> bytes(values.size());
  std::ranges::transform(values, bytes.begin(), [](float value) {
    // A NaN is black, so that a model that fails shows.
    const double clamped = std::isnan(value) ? 0.0 : std::clamp(static_cast<double>(value), 0.0, 1.0);
    return static_cast<uint8_t>(std::lround(clamped * 255));
  });
  return bytes;
}

Planes cropped_to_multiple(const Planes& image, int64_t multiple) {
  Planes result{image.channels, image.height - image.height % multiple, image.width - image.width % multiple};
  result.values.reserve(static_cast<std::size_t>(result.channels) * result.plane());
  for (int64_t c = 0; c < image.channels; ++c) {
    for (int64_t y = 0; y < result.height; ++y) {
      const auto row =
          image.channel(c).subspan(static_cast<std::size_t>(y * image.width), static_cast<std::size_t>(result.width));
      result.values.insert(result.values.end(), row.begin(), row.end());
    }
  }
  return result;
}

}  // namespace gpunn::data
