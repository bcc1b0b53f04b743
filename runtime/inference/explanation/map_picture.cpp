// Class activation maps as pictures.
#include <gpunn/error.hpp>
#include <gpunn/explain.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>

#include "data/images/image.hpp"
#include "inference/explanation/class_map.hpp"

namespace gpunn {

namespace {

constexpr double kShareOfMap = 0.5;  // the rest is the image, as in the pictures of the package grad-cam

using Colour = std::array<double, 3>;

// Inferno (van der Walt and Smith, 2015): its lightness rises evenly from black to pale yellow, so that more is
// brighter for every reader and in print. Nine of its colours, between which it is interpolated.
constexpr std::array<Colour, 9> kInferno = {{{0, 0, 4},
                                             {33, 12, 74},
                                             {86, 16, 110},
                                             {137, 34, 106},
                                             {187, 55, 84},
                                             {227, 89, 50},
                                             {249, 140, 10},
                                             {249, 201, 50},
                                             {252, 255, 164}}};

Colour inferno(float value) {
  const double place = std::clamp(static_cast<double>(value), 0.0, 1.0) * (kInferno.size() - 1);
  const auto first = std::min(static_cast<std::size_t>(place), kInferno.size() - 2);
  Colour colour{};
  for (std::size_t c = 0; c < colour.size(); ++c) {
    colour[c] = std::lerp(kInferno[first][c], kInferno[first + 1][c], place - static_cast<double>(first));
  }
  return colour;
}

int64_t enlargement(const Explanation& explanation, int64_t least_side) {
  const int64_t side = std::min(explanation.height, explanation.width);
  return std::max<int64_t>(1, (least_side + side - 1) / side);
}

// The map in colours, [height, width, 3], enlarged smoothly.
data::Image in_colours(const Explanation& explanation, int64_t factor) {
  const int64_t height = explanation.height * factor, width = explanation.width * factor;
  data::Image picture = data::make_image(height, width, 3, "a map");
  const std::vector<float> map =
      inference::resize_bilinear(explanation.map, explanation.height, explanation.width, height, width);
  for (std::size_t i = 0; i < map.size(); ++i) {
    const Colour colour = inferno(map[i]);
    for (std::size_t c = 0; c < 3; ++c) picture.values[3 * i + c] = static_cast<uint8_t>(std::lround(colour[c]));
  }
  return picture;
}

}  // namespace

std::string heatmap_png(const Explanation& explanation, int64_t least_side) {
  return data::encode_png(in_colours(explanation, enlargement(explanation, least_side)));
}

std::string overlay_png(const Explanation& explanation, std::span<const uint8_t> image, int64_t least_side) {
  const auto plane = static_cast<std::size_t>(explanation.height * explanation.width);
  if (image.size() != plane && image.size() != 3 * plane) {
    throw Error("a map of " + std::to_string(explanation.width) + " by " + std::to_string(explanation.height) +
                    " pixels lies over an image of as many, grey or in colours; found " + std::to_string(image.size()) +
                    " values",
                ExitCode::usage);
  }
  const int64_t times = enlargement(explanation, least_side);
  data::Image picture = in_colours(explanation, times);
  const auto factor = static_cast<std::size_t>(times);
  const auto columns = static_cast<std::size_t>(picture.width), width = static_cast<std::size_t>(explanation.width);
  for (std::size_t i = 0; i < picture.values.size() / 3; ++i) {
    const std::size_t pixel = i / columns / factor * width + i % columns / factor;
    for (std::size_t c = 0; c < 3; ++c) {
      const double seen = image[image.size() == plane ? pixel : c * plane + pixel];
      uint8_t& value = picture.values[3 * i + c];
      value = static_cast<uint8_t>(std::lround(std::lerp(seen, static_cast<double>(value), kShareOfMap)));
    }
  }
  return data::encode_png(picture);
}

}  // namespace gpunn
