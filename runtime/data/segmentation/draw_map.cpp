#include "data/segmentation/draw_map.hpp"

#include <algorithm>
#include <utility>

namespace gpunn::data {

// The VOC devkit's VOClabelcolormap: the bits of the id, three at a time, become the high bits of red, green and blue.
Rgb map_colour(uint8_t id) {
  Rgb colour{};
  for (int bit = 0; bit < 8; ++bit) {
    const int value = id >> bit & 1;
    colour[static_cast<std::size_t>(bit % 3)] |= static_cast<uint8_t>(value << (7 - bit / 3));
  }
  return colour;
}

std::string encode_label_map(const LabelMap& map) {
  Palette palette;
  for (std::size_t id = 0; id < palette.size(); ++id) palette[id] = map_colour(static_cast<uint8_t>(id));
  return encode_png({map.height, map.width, 1, map.ids}, palette);
}

void draw_map(Image& image, const LabelMap& map) {
  if (image.channels != 3) image = convert_channels(std::move(image), 3);
  const int64_t height = std::min(image.height, map.height), width = std::min(image.width, map.width);
  const auto id_at = [&](int64_t y, int64_t x) { return map.ids[static_cast<std::size_t>(y * map.width + x)]; };
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const uint8_t id = id_at(y, x);
      if (id == 0 || id == kIgnoredPixel) continue;
      const bool outline = (y > 0 && id_at(y - 1, x) != id) || (y + 1 < height && id_at(y + 1, x) != id) ||
                           (x > 0 && id_at(y, x - 1) != id) || (x + 1 < width && id_at(y, x + 1) != id);
      const Rgb colour = map_colour(id);
      for (std::size_t c = 0; c < colour.size(); ++c) {
        uint8_t& value = image.values[static_cast<std::size_t>(y * image.width + x) * 3 + c];
        value = outline ? colour[c] : static_cast<uint8_t>((value + colour[c] + 1) / 2);
      }
    }
  }
}

}  // namespace gpunn::data
