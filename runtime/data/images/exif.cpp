// The orientation that a camera notes in a JPEG (EXIF 2.3, tag 0x0112).
#include "data/images/exif.hpp"

#include <cstddef>
#include <utility>

namespace gpunn::data {

namespace {

constexpr std::size_t kTiffHeader = 8, kEntryBytes = 12;
constexpr uint32_t kOrientationTag = 0x0112;

// Numbers of a TIFF, of which all reads beyond the end are 0.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : bytes_(bytes), little_(bytes.starts_with("II")) {}
  uint32_t number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || bytes_.size() - at < size) return 0;
    uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value = value << 8U | static_cast<uint8_t>(bytes_[at + (little_ ? size - 1 - i : i)]);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool little_;
};

int orientation_in(std::string_view tiff_bytes) {
  const Tiff tiff(tiff_bytes);
  const std::size_t directory = tiff.number(4, 4);
  const std::size_t entries = tiff.number(directory, 2);
  for (std::size_t i = 0; i < entries && directory + i * kEntryBytes < tiff_bytes.size(); ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (tiff.number(entry, 2) != kOrientationTag) continue;
    const uint32_t value = tiff.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

bool mirrors_columns(int orientation) {
  return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}
bool mirrors_rows(int orientation) {
  return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

}  // namespace

int exif_orientation(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (!bytes.starts_with("\xff\xd8"sv)) return 1;
  const Tiff jpeg(bytes);  // big-endian
  for (std::size_t at = 2; at + 4 <= bytes.size() && bytes[at] == '\xff';) {
    const uint32_t marker = jpeg.number(at + 1, 1), length = jpeg.number(at + 2, 2);
    if (marker == 0xDA || length < 2) return 1;  // the pixels begin
    const std::string_view segment = bytes.substr(at + 4, length - 2);
    if (marker == 0xE1 && segment.starts_with("Exif\0\0"sv) && segment.size() > 6 + kTiffHeader) {
      return orientation_in(segment.substr(6));
    }
    at += 2 + length;
  }
  return 1;
}

Image turned_by_orientation(const Image& image, int orientation) {
  if (orientation < 2) return image;
  const bool across = swaps_sides(orientation);
  Image turned = image;
  turned.turned = true;
  if (across) std::swap(turned.height, turned.width);
  const auto channels = static_cast<std::size_t>(image.channels);
  for (int64_t y = 0; y < turned.height; ++y) {
    for (int64_t x = 0; x < turned.width; ++x) {
      int64_t from_y = across ? x : y, from_x = across ? y : x;
      if (mirrors_columns(orientation)) from_x = image.width - 1 - from_x;
      if (mirrors_rows(orientation)) from_y = image.height - 1 - from_y;
      const auto from = static_cast<std::size_t>(from_y * image.width + from_x) * channels;
      const auto to = static_cast<std::size_t>(y * turned.width + x) * channels;
      for (std::size_t c = 0; c < channels; ++c) turned.values[to + c] = image.values[from + c];
    }
  }
  return turned;
}

ImageRegion stored_region(const ImageRegion& shown, int orientation, int64_t stored_height, int64_t stored_width) {
  ImageRegion stored = shown;
  if (swaps_sides(orientation)) {
    std::swap(stored.top, stored.left);
    std::swap(stored.height, stored.width);
  }
  if (mirrors_columns(orientation)) stored.left = stored_width - stored.left - stored.width;
  if (mirrors_rows(orientation)) stored.top = stored_height - stored.top - stored.height;
  return stored;
}

}  // namespace gpunn::data
