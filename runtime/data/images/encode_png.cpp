#include <gpunn/error.hpp>

#include <array>
#include <cstddef>

#include <png.h>

#include "data/images/image.hpp"

namespace gpunn::data {

std::string encode_png(const Image& image) {
  png_image header = {};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  constexpr std::array<png_uint_32, 4> kFormats = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  header.format = kFormats.at(static_cast<std::size_t>(image.channels - 1));
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(header), '\0');
  png_alloc_size_t size = bytes.size();
  if (png_image_write_to_memory(&header, bytes.data(), &size, 0, image.values.data(), 0, nullptr) == 0) {
    throw Error(std::string("can't make a PNG: ") + header.message);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace gpunn::data
