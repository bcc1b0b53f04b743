#include "data/detection/draw_boxes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "data/images/letters.hpp"

namespace gpunn::data {

namespace {

using Colour = std::array<uint8_t, 3>;

// Of Okabe and Ito (2008): to be told apart by everybody.
constexpr std::array<Colour, 7> kColours = {Colour{230, 159, 0}, {86, 180, 233}, {0, 158, 115},  {240, 228, 66},
                                            {0, 114, 178},       {213, 94, 0},   {204, 121, 167}};
constexpr int64_t kDash = 6;  // pixels

void fill(Image& image, int64_t top, int64_t left, int64_t bottom, int64_t right, const Colour& colour, bool dashed) {
  for (int64_t y = std::max<int64_t>(top, 0); y < std::min(bottom, image.height); ++y) {
    for (int64_t x = std::max<int64_t>(left, 0); x < std::min(right, image.width); ++x) {
      if (dashed && (x + y) / kDash % 2 != 0) continue;
      std::copy(colour.begin(), colour.end(), image.values.begin() + (y * image.width + x) * 3);
    }
  }
}

}  // namespace

void draw_boxes(Image& image, std::span<const ShownBox> boxes) {
  if (image.channels != 3) image = convert_channels(std::move(image), 3);
  const int64_t thick = std::clamp<int64_t>(std::min(image.height, image.width) / 200, 1, 6);
  const Lettering lettering{.magnified = thick};
  for (const ShownBox& shown : boxes) {
    const Colour& colour = kColours[static_cast<std::size_t>(std::max<int64_t>(shown.category, 0)) % kColours.size()];
    const auto pixel = [](double at, int64_t most) {
      return static_cast<int64_t>(std::lround(std::clamp(at, 0.0, static_cast<double>(most))));
    };
    const int64_t top = pixel(shown.box.top, image.height), bottom = pixel(shown.box.bottom, image.height);
    const int64_t left = pixel(shown.box.left, image.width), right = pixel(shown.box.right, image.width);
    fill(image, top, left, top + thick, right, colour, shown.dashed);
    fill(image, bottom - thick, left, bottom, right, colour, shown.dashed);
    fill(image, top, left, bottom, left + thick, colour, shown.dashed);
    fill(image, top, right - thick, bottom, right, colour, shown.dashed);
    if (shown.text.empty()) continue;
    // Above the box, or within it at the border of the picture.
    const int64_t height = lettering.height() + 2 * thick, above = top >= height ? top - height : top;
    fill(image, above, left, above + height, left + lettering.width(shown.text) + 2 * thick, colour, false);
    lettering.draw(shown.text, above + thick, left + thick, image);
  }
}

}  // namespace gpunn::data
