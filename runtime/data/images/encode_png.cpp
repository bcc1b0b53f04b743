#include <gpunn/error.hpp>

#include <array>
#include <cstddef>

#include <png.h>

#include "data/images/image.hpp"

namespace gpunn::data {

namespace {

// `palette`: the colours that values of one channel are places of; nullptr: values are colours.
std::string encoded(const Image& image, png_uint_32 format, const Palette* palette) {
  png_image header = {};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = format;
  if (palette != nullptr) header.colormap_entries = static_cast<png_uint_32>(palette->size());
  const void* const colours = palette == nullptr ? nullptr : palette->data();
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(header), '\0');
  png_alloc_size_t size = bytes.size();
  if (png_image_write_to_memory(&header, bytes.data(), &size, 0, image.values.data(), 0, colours) == 0) {
    throw Error(std::string("can't make a PNG: ") + header.message);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::string encode_png(const Image& image) {
  constexpr std::array<png_uint_32, 4> kFormats = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  return encoded(image, kFormats.at(static_cast<std::size_t>(image.channels - 1)), nullptr);
}

std::string encode_png(const Image& places, const Palette& palette) {
  return encoded(places, PNG_FORMAT_RGB_COLORMAP, &palette);
}

}  // namespace gpunn::data
