#pragma once

#include <cstdint>
#include <string_view>

#include "data/images/image.hpp"

namespace gpunn::data {

// A line of text in pixels: letters of 5 columns and 7 rows, 2 rows more below the base line, and a column between two
// of them, each pixel `magnified` times as large. A character that is no printable ASCII is shown as "?".
struct Lettering {
  int64_t magnified = 2;
  uint8_t ink = 0;  // of all channels

  int64_t width(std::string_view text) const;
  int64_t height() const;
  // Throws nothing: what lies outside the image is left out.
  void draw(std::string_view text, int64_t top, int64_t left, Image& image) const;
};

}  // namespace gpunn::data
