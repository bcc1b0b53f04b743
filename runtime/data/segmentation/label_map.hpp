#pragma once

#include <gpunn/data.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "data/segmentation/colour_table.hpp"

namespace gpunn::data {

// The id of a pixel that has no class: nothing is learnt of it, and no metric counts it.
inline constexpr uint8_t kIgnoredPixel = 255;

// A class id for each pixel of a picture, left to right, top to bottom.
struct LabelMap {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> ids;
};

// Reads a label map from a PNG. The ids are its grey values (of 1 to 16 bits), or the places of its pixels in a
// palette. With `colours`, the id of a pixel is the class of its colour in that table. Throws Error, with the file and
// the pixel, if the file is not a sound PNG, if an id is above 255, or if a colour is not in the table.
LabelMap read_label_map(std::span<const uint8_t> bytes, const std::filesystem::path& file,
                        const ColourTable* colours = nullptr);
LabelMap read_label_map(const std::filesystem::path& file, const ColourTable* colours = nullptr);

// The map of the picture that read_image() gives with the same size and `fit`. Each pixel takes the id that is nearest
// to its centre; pixels outside the picture are ignored.
LabelMap fitted_map(const LabelMap& map, int64_t height, int64_t width, const ImageFit& fit);

}  // namespace gpunn::data
