#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/images/image.hpp"
#include "fields/box.hpp"

namespace gpunn::data {

// A box that is shown, with what is written at its top.
struct ShownBox {
  fields::Box box;
  std::string text;
  int64_t category = 0;  // decides on the colour
  bool dashed = false;
};

// Draws boxes on a picture, which becomes a coloured one.
void draw_boxes(Image& image, std::span<const ShownBox> boxes);

}  // namespace gpunn::data
