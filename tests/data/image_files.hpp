// PNG and JPEG files that the tests write.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <jpeglib.h>
#include <png.h>

namespace test {

struct PngOptions {
  int color_type = PNG_COLOR_TYPE_GRAY;
  int bit_depth = 8;
  int interlace = PNG_INTERLACE_NONE;
  std::vector<png_color> palette = {};
  std::vector<uint8_t> palette_alpha = {};
};

// `rows`: the rows as libpng takes them, one after the other.
inline std::string make_png(uint32_t width, uint32_t height, const std::string& rows, const PngOptions& options = {}) {
  std::string result;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &result,
      [](png_structp p, png_bytep data, png_size_t size) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<char*>(data), size);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, width, height, options.bit_depth, options.color_type, options.interlace,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!options.palette.empty()) {
    png_set_PLTE(png, info, options.palette.data(), static_cast<int>(options.palette.size()));
  }
  if (!options.palette_alpha.empty()) {
    png_set_tRNS(png, info, options.palette_alpha.data(), static_cast<int>(options.palette_alpha.size()), nullptr);
  }
  png_write_info(png, info);
  std::string pixels = rows;
  std::vector<png_bytep> pointers(height);
  const std::size_t row_bytes = png_get_rowbytes(png, info);
  for (uint32_t y = 0; y < height; ++y) pointers[y] = reinterpret_cast<png_bytep>(pixels.data()) + y * row_bytes;
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return result;
}

// stored: the colour space in the file; by default what libjpeg chooses for pixels of `space`.
inline std::string make_jpeg(int width, int height, const std::string& pixels, J_COLOR_SPACE space, int components,
                             bool progressive = false, J_COLOR_SPACE stored = JCS_UNKNOWN) {
  jpeg_compress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &buffer, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = components;
  jpeg.in_color_space = space;
  jpeg_set_defaults(&jpeg);
  if (stored != JCS_UNKNOWN) jpeg_set_colorspace(&jpeg, stored);
  jpeg_set_quality(&jpeg, 95, TRUE);
  if (progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  std::string copy = pixels;
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = reinterpret_cast<JSAMPROW>(copy.data()) +
                std::size_t{jpeg.next_scanline} * jpeg.image_width * static_cast<std::size_t>(components);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::string result(reinterpret_cast<char*>(buffer), size);
  jpeg_destroy_compress(&jpeg);
  std::free(buffer);
  return result;
}

// A JPEG whose camera was held as this number says, 1 to 8 (EXIF).
inline std::string with_orientation(const std::string& jpeg, int orientation) {
  std::string tiff("MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0", 26);
  tiff[19] = static_cast<char>(orientation);
  const auto length = static_cast<char>(2 + 6 + tiff.size());
  return jpeg.substr(0, 2) + std::string("\xff\xe1\0", 3) + length + std::string("Exif\0\0", 6) + tiff + jpeg.substr(2);
}

}  // namespace test
