#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpunn::data {

// An image as f32 [channels, height, width], from 0 to 1: one plane of luma or grey, or red, green and blue.
struct Planes {
  int64_t channels = 1, height = 0, width = 0;
  std::vector<float> values = {};

  std::size_t plane() const { return static_cast<std::size_t>(height * width); }
  std::span<const float> channel(int64_t c) const {
    return std::span(values).subspan(static_cast<std::size_t>(c) * plane(), plane());
  }
};

// The luma of BT.601 as MATLAB's rgb2ycbcr rounds it: 16 for black to 235 for white.
uint8_t luma(uint8_t red, uint8_t green, uint8_t blue);

// The bytes of a picture: each value clamped to [0, 1], times 255, rounded.
std::vector<uint8_t> to_bytes(std::span<const float> values);

// The top left part, of sides that are multiples of `multiple`.
Planes cropped_to_multiple(const Planes& image, int64_t multiple);

}  // namespace gpunn::data
