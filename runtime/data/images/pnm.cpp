#include <gpunn/error.hpp>

#include <algorithm>
#include <cstring>

#include "data/images/image.hpp"
#include "data/images/picture.hpp"

namespace gpunn::data {

namespace {

// The header of a PGM or PPM file: numbers between white space, with comments from '#' to the line's end.
class PnmReader {
 public:
  PnmReader(std::span<const uint8_t> bytes, const std::filesystem::path& file, int64_t most_pixels,
            Pixels pixels = Pixels::all)
      : bytes_(bytes), file_(file), most_pixels_(most_pixels), strict_(pixels == Pixels::all) {}

  ImageSides sides() {
    at_ = 2;
    const int64_t width = number("width"), height = number("height");
    require_size(height, width, file_, most_pixels_);
    return {height, width};
  }

  Image read() {
    const bool colour = bytes_[1] == '6';
    at_ = 2;
    const int64_t width = number("width");
    const int64_t height = number("height");
    const int64_t most = number("largest value");
    if (most < 1 || most > 65535) fail("the largest value is " + std::to_string(most) + "; expected 1 to 65535");
    if (at_ >= bytes_.size() || !is_space(bytes_[at_])) fail("expected one white space before the pixels");
    ++at_;
    const int64_t channels = colour ? 3 : 1;
    const std::size_t wide = most > 255 ? 2 : 1;
    // No picture is made that the file can't fill.
    const std::size_t row_values = width > 0 ? static_cast<std::size_t>(width * channels) : 1;
    const std::size_t whole_rows = (bytes_.size() - at_) / (row_values * wide);
    if (height > 0 && width > 0 && height <= kMostSide && width <= kMostSide &&
        whole_rows < static_cast<std::size_t>(height) && (strict_ || whole_rows == 0)) {
      fail("the header promises " + std::to_string(width) + " by " + std::to_string(height) + " pixels, and only " +
           std::to_string(bytes_.size() - at_) + " bytes follow");
    }
    Image image = make_image(height, width, channels, file_, most_pixels_);
    image.from_16_bits = wide == 2;
    const std::size_t there =
        std::min(image.values.size(), whole_rows * row_values);  // of a damaged file; the rest is 0
    if (most == 255) {                                           // bytes as they are: what packed folders hold
      std::memcpy(image.values.data(), bytes_.data() + at_, there);
      return image;
    }
    for (std::size_t i = 0; i < there; ++i) {
      const std::size_t byte = at_ + i * wide;
      int64_t value = bytes_[byte];
      if (wide == 2) value = value << 8 | bytes_[byte + 1];
      if (!strict_) value = std::min(value, most);
      if (value > most) fail("a pixel is " + std::to_string(value) + "; the largest value is " + std::to_string(most));
      image.values[i] = static_cast<uint8_t>((value * 255 + most / 2) / most);
    }
    return image;
  }

  // The pixels of a sound file with more than 255 values, as 16 bits. No values for another.
  Picture read_wide() {
    const bool colour = bytes_[1] == '6';
    at_ = 2;
    Picture picture{.height = 0, .width = number("width"), .channels = colour ? 3 : 1, .bits = 16};
    picture.height = number("height");
    const int64_t most = number("largest value");
    if (most <= 255 || most > 65535 || at_ >= bytes_.size()) return picture;
    require_size(picture.height, picture.width, file_, most_pixels_);
    const auto count = static_cast<std::size_t>(picture.height * picture.width * picture.channels);
    if (2 * count > bytes_.size() - at_ - 1) return picture;
    for (std::size_t i = 0, byte = at_ + 1; i < count; ++i, byte += 2) {
      const int64_t value = bytes_[byte] << 8 | bytes_[byte + 1];
      if (value > most) {
        picture.values.clear();
        return picture;
      }
      picture.values.push_back(static_cast<uint16_t>((value * 65535 + most / 2) / most));
    }
    return picture;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(file_.string() + ": damaged PGM or PPM: " + what);
  }
  static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  int64_t number(const char* what) {
    while (at_ < bytes_.size() && (is_space(bytes_[at_]) || bytes_[at_] == '#')) {
      if (bytes_[at_] == '#') {
        while (at_ < bytes_.size() && bytes_[at_] != '\n') ++at_;
      } else {
        ++at_;
      }
    }
    const std::size_t first = at_;
    int64_t value = 0;
    for (; at_ < bytes_.size() && bytes_[at_] >= '0' && bytes_[at_] <= '9'; ++at_) {
      value = value * 10 + (bytes_[at_] - '0');
      if (value > 1'000'000'000) fail(std::string("the ") + what + " is too large");
    }
    if (at_ == first) fail(std::string("expected the ") + what + " at byte " + std::to_string(at_));
    return value;
  }

  std::span<const uint8_t> bytes_;
  const std::filesystem::path& file_;
  int64_t most_pixels_;
  bool strict_;  // a lost pixel is an error
  std::size_t at_ = 0;
};

}  // namespace

Image decode_pnm(std::span<const uint8_t> bytes, const std::filesystem::path& file, int64_t most_pixels,
                 Pixels pixels) {
  return PnmReader(bytes, file, most_pixels, pixels).read();
}

Picture decode_pnm_picture(std::span<const uint8_t> bytes, const std::filesystem::path& file) {
  const bool is_pnm = bytes.size() > 2 && bytes[0] == 'P' && (bytes[1] == '5' || bytes[1] == '6');
  return is_pnm ? PnmReader(bytes, file, kMostPixels).read_wide() : Picture();
}

ImageSides sides_of_pnm(std::span<const uint8_t> bytes, const std::filesystem::path& file) {
  return PnmReader(bytes, file, kMostPixels).sides();
}

}  // namespace gpunn::data
