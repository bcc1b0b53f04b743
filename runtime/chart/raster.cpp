#include "chart/raster.hpp"

#include <gpunn/error.hpp>

#include <cstddef>

#include <png.h>

namespace gpunn::chart {

namespace {

png_uint_32 format_of(int64_t channels) {
  switch (channels) {
    case 1:
      return PNG_FORMAT_GRAY;
    case 3:
      return PNG_FORMAT_RGB;
    case 4:
      return PNG_FORMAT_RGBA;
    default:
      throw Error("a PNG image has 1, 3 or 4 channels here, not " + std::to_string(channels));
  }
}

}  // namespace

std::string png(const Raster& raster) {
  constexpr int64_t kMostSide = 1 << 15;
  if (raster.width < 1 || raster.height < 1 || raster.width > kMostSide || raster.height > kMostSide ||
      raster.pixels.size() != static_cast<std::size_t>(raster.width * raster.height * raster.channels)) {
    throw Error("no PNG image of " + std::to_string(raster.width) + " x " + std::to_string(raster.height) + " x " +
                std::to_string(raster.channels) + " with " + std::to_string(raster.pixels.size()) + " values");
  }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(raster.width);
  image.height = static_cast<png_uint_32>(raster.height);
  image.format = format_of(raster.channels);
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(size, '\0');
  if (png_image_write_to_memory(&image, file.data(), &size, 0, raster.pixels.data(), 0, nullptr) == 0) {
    throw Error(std::string("libpng can't write an image: ") + image.message);
  }
  file.resize(size);
  return file;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace gpunn::chart
