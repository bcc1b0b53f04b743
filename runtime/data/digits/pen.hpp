#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/digits/glyphs.hpp"
#include "data/synthetic/philox_source.hpp"

namespace gpunn::data {

inline constexpr int kDigitSize = 28;  // height and width of an image, pixels

using DigitImage = std::array<uint8_t, std::size_t{kDigitSize} * kDigitSize>;

// Points joined by straight lines, in pixels.
using Polyline = std::vector<Point>;

// Draws lines of the given half width with soft edges, light (up to `peak`) on dark: a pixel's shade is how much of it
// lies within half_width of the nearest line, taken from the distance to its centre.
DigitImage draw(const std::vector<Polyline>& lines, double half_width, double peak);

// Adds a little noise of mean 0 to every pixel.
void add_noise(DigitImage& image, double amplitude, PhiloxSource& random);

}  // namespace gpunn::data
