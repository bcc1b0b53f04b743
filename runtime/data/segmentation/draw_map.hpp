#pragma once

#include <string>

#include "data/images/image.hpp"
#include "data/segmentation/label_map.hpp"

namespace gpunn::data {

// The colour of a class in PASCAL VOC's palette. Class 0 is black, and 255 is nearly white.
Rgb map_colour(uint8_t id);

// A PNG file whose pixels are ids, shown in the colours of that palette.
std::string encode_label_map(const LabelMap& map);

// Draws the classes of a map of the same size on a picture, which becomes a coloured one: each class in its colour,
// half transparent, with an opaque outline. Class 0, which is black in the palette, and ignored pixels stay as they
// are.
void draw_map(Image& image, const LabelMap& map);

}  // namespace gpunn::data
