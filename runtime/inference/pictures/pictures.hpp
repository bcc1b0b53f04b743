// Pictures as models see them, and back.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>

#include "data/images/image.hpp"
#include "data/images/picture.hpp"
#include "data/images/planes.hpp"

namespace gpunn::inference {

// Bytes, pixel by pixel, as planes from 0 to 1.
data::Planes planes_of_bytes(std::span<const uint8_t> bytes, int64_t channels, int64_t height, int64_t width);

// BT.601 for values from 0 to 1: luma above black, and the differences of blue and red about the middle, are kToLuma
// times red, green and blue; kFromLuma is its inverse.
inline constexpr double kBlack = 16.0 / 255, kMiddle = 128.0 / 255;
using ColourMatrix = std::array<std::array<double, 3>, 3>;
inline constexpr ColourMatrix kToLuma = {{{65.481 / 255, 128.553 / 255, 24.966 / 255},
                                          {-37.797 / 255, -74.203 / 255, 112.0 / 255},
                                          {112.0 / 255, -93.786 / 255, -18.214 / 255}}};
inline constexpr ColourMatrix kFromLuma = {
    {{255.0 / 219, 0, 0.701 * 255 / 112},
     {255.0 / 219, -0.886 * 0.114 / 0.587 * 255 / 112, -0.701 * 0.299 / 0.587 * 255 / 112},
     {255.0 / 219, 0.886 * 255 / 112, 0}}};

// Not rounded: a plane of luma, and two of the differences of blue and red.
struct LumaColours {
  data::Planes luma, colours;
};
LumaColours split_colours(const data::Planes& rgb);
data::Planes join_colours(const data::Planes& luma, const data::Planes& colours);

// The planes, clamped to [0, 1], with a plane of how opaque they are where it has values.
data::Image picture_of(const data::Planes& planes, const data::Planes& opacity = {});

// The picture's colours, and how opaque its pixels are, from 0 to 1; no values where all is opaque.
data::Planes planes_of(const data::Picture& picture);
data::Planes opacity_of(const data::Picture& picture);
// Planes, clamped to [0, 1], in a picture of as many bits as `like` and with its tags, as far as they are for these
// colours.
data::Picture picture_like(const data::Picture& like, const data::Planes& planes, const data::Planes& opacity = {});

// A PNG file, in a folder that is made.
void write_picture(const std::filesystem::path& file, const data::Image& image);
void write_picture(const std::filesystem::path& file, const data::Picture& picture);

}  // namespace gpunn::inference
