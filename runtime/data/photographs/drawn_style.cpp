#include "data/photographs/drawn_style.hpp"

#include <array>
#include <cmath>
#include <cstddef>

namespace gpunn::data {

Image drawn_style() {
  constexpr int64_t kSide = 256;
  constexpr std::array<std::array<uint8_t, 3>, 5> kColours = {
      {{16, 34, 84}, {238, 196, 72}, {200, 70, 42}, {34, 128, 140}, {244, 236, 214}}};
  Image image = make_image(kSide, kSide, 3, "the drawn style");
  std::size_t at = 0;
  for (int64_t y = 0; y < kSide; ++y) {
    for (int64_t x = 0; x < kSide; ++x) {
      const double u = static_cast<double>(x), v = static_cast<double>(y);
      const double bend = 14 * std::sin(u / 23) + 11 * std::sin((u + 2 * v) / 37);
      const double place = (v + bend) / 9 + std::sin((u - v) / 29);
      const auto band = static_cast<int64_t>(std::floor(place));
      const auto count = static_cast<int64_t>(kColours.size());
      const auto& colour = kColours.at(static_cast<std::size_t>(((band * 3) % count + count) % count));
      const double shade = 0.8 + 0.2 * (place - std::floor(place));  // darker at one edge, as a stroke of a brush
      for (const uint8_t part : colour) image.values[at++] = static_cast<uint8_t>(shade * part);
    }
  }
  return image;
}

}  // namespace gpunn::data
