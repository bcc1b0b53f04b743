// Pictures as their files have them: 8 or 16 bits a channel, opacity, and what their colours are.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/images/colour_tags.hpp"
#include "data/images/pixels.hpp"

namespace gpunn::data {

struct Picture {
  int64_t height = 0, width = 0, channels = 1;  // 1 (grey) or 3 (red, green, blue)
  int bits = 8;                                 // a channel: 8 or 16
  std::vector<uint16_t> values = {};            // pixel by pixel
  std::vector<uint16_t> opacity = {};           // a number a pixel; empty: all is opaque
  ColourTags tags = {};
  bool first_frame = false;  // of an animation
  // Red, green and blue. Only of decode_png_as_stored(): `values` are places in it.
  std::vector<std::array<uint8_t, 3>> palette = {};

  // For the user: what of the file a picture in these colours can't have.
  std::vector<std::string> notes(bool grey) const;

  uint16_t most() const { return bits == 16 ? 0xFFFF : 0xFF; }
};

// Reads the kinds of files that decode_image() reads, and turns a JPEG as the camera noted. Throws Error likewise.
Picture read_picture(const std::filesystem::path& file, std::string* damage = nullptr);

// The decoders of files that may have 16 bits a channel. Of a PGM or PPM with 8 bits, and of other files, no values.
Picture decode_png_picture(std::span<const uint8_t> bytes, const std::filesystem::path& file, Pixels pixels);
// The numbers that a PNG stores for its pixels: not scaled to 8 bits, and of a palette the places in it.
Picture decode_png_as_stored(std::span<const uint8_t> bytes, const std::filesystem::path& file);
Picture decode_pnm_picture(std::span<const uint8_t> bytes, const std::filesystem::path& file);

// A PNG file's bytes, with the picture's bits and tags and no others.
std::string encode_png(const Picture& picture);

}  // namespace gpunn::data
