#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn::chart {

// Pixels, row by row from the top: grey (1 channel), RGB (3) or RGB with opacity (4).
struct Raster {
  int64_t width = 0, height = 0, channels = 0;
  std::vector<uint8_t> pixels;  // [height, width, channels]
};

// The pixels as a PNG file. Throws Error if there are none, or if their number contradicts the sizes.
std::string png(const Raster& raster);

std::string base64(std::string_view bytes);

}  // namespace gpunn::chart
