#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <string_view>

#include <png.h>

#include "data/images/image.hpp"
#include "data/images/picture.hpp"

namespace gpunn::data {

namespace {

uint32_t big_endian(const uint8_t* at) {
  return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 | static_cast<uint32_t>(at[2]) << 8 |
         at[3];
}

// Whether an animation's control chunk (APNG: acTL) comes before the pixels. libpng passes over it and reads the image
// that every viewer shows.
bool is_animated(std::span<const uint8_t> bytes) {
  constexpr std::size_t kSignature = 8, kAround = 12;  // length, type and check sum of a chunk
  for (std::size_t at = kSignature; at + kAround <= bytes.size();) {
    const std::string_view type(reinterpret_cast<const char*>(bytes.data()) + at + 4, 4);
    if (type == "acTL") return true;
    if (type == "IDAT") return false;
    const std::size_t length = big_endian(bytes.data() + at);
    if (length > bytes.size() - at - kAround) return false;
    at += length + kAround;
  }
  return false;
}

// libpng reports an error by a call that must not return. It jumps back into guarded(), past C frames alone: what
// guarded() is given must hold no object with a destructor.
class PngDecoder {
 public:
  PngDecoder(std::span<const uint8_t> bytes, const std::filesystem::path& file, int64_t most_pixels, Pixels pixels)
      : file_(file),
        most_pixels_(most_pixels),
        strict_(pixels == Pixels::all),
        rest_(bytes),
        animated_(is_animated(bytes)) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw Error("libpng can't start: out of memory or another version than it was compiled with");
    }
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  // In 8 bits a channel, transparent pixels on white.
  Image decode() {
    read_header();
    const auto height = static_cast<int64_t>(png_get_image_height(png_, info_));
    const auto width = static_cast<int64_t>(png_get_image_width(png_, info_));
    const bool colour = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0;
    Image image = make_image(height, width, colour ? 3 : 1, file_, most_pixels_);
    image.from_16_bits = png_get_bit_depth(png_, info_) == 16;
    image.first_frame = animated_;

    guarded([this] {
      png_set_expand(png_);    // palettes to colours, few bits to eight, transparent colours to alpha
      png_set_scale_16(png_);  // sixteen bits to eight
      png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    const std::size_t channels = png_get_channels(png_, info_);
    const auto expected = static_cast<std::size_t>(image.channels);
    if ((channels != expected && channels != expected + 1) ||
        png_get_rowbytes(png_, info_) != static_cast<std::size_t>(width) * channels) {
      throw Error(file_.string() + ": libpng gives " + std::to_string(channels) + " channels; expected " +
                  std::to_string(expected) + ", or one more with transparency");
    }
    const bool alpha = channels > expected;
    std::vector<uint8_t> raw;
    if (alpha) raw.resize(static_cast<std::size_t>(height * width) * channels);
    uint8_t* target = alpha ? raw.data() : image.values.data();
    std::vector<png_bytep> rows(static_cast<std::size_t>(height));
    for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = target + y * static_cast<std::size_t>(width) * channels;
    png_bytepp row_pointers = rows.data();
    read_rows(row_pointers);
    if (alpha) put_on_white(raw, channels, image);
    return image;
  }

  // All that the file has, with 16 bits a channel if it has them; `as_stored`: a palette's pixels as places in it, and
  // fewer than 8 bits unscaled.
  Picture decode_picture(bool as_stored) {
    read_header();
    const int type = png_get_color_type(png_, info_);
    const bool places = as_stored && type == PNG_COLOR_TYPE_PALETTE;
    Picture picture{.height = png_get_image_height(png_, info_),
                    .width = png_get_image_width(png_, info_),
                    .channels = (type & PNG_COLOR_MASK_COLOR) != 0 && !places ? 3 : 1,
                    .bits = png_get_bit_depth(png_, info_) == 16 ? 16 : 8};
    require_size(picture.height, picture.width, file_, most_pixels_);
    if (places) picture.palette = palette();
    guarded([this, as_stored] {
      if (as_stored) {
        png_set_packing(png_);  // a byte for each pixel
      } else {
        png_set_expand(png_);
      }
      png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    picture.first_frame = animated_;
    const std::size_t channels = png_get_channels(png_, info_), row_bytes = png_get_rowbytes(png_, info_);
    std::vector<uint8_t> raw(row_bytes * static_cast<std::size_t>(picture.height));
    std::vector<png_bytep> rows;
    for (std::size_t y = 0; y < static_cast<std::size_t>(picture.height); ++y)
      rows.push_back(raw.data() + y * row_bytes);
    png_bytepp row_pointers = rows.data();
    read_rows(row_pointers);
    const bool wide = picture.bits == 16;
    for (std::size_t i = 0; i < raw.size() / (wide ? 2 : 1); ++i) {
      const auto value = static_cast<uint16_t>(wide ? raw[2 * i] << 8 | raw[2 * i + 1] : raw[i]);
      (i % channels < static_cast<std::size_t>(picture.channels) ? picture.values : picture.opacity).push_back(value);
    }
    return picture;
  }

 private:
  void read_header() {
    guarded([this] {
      png_set_read_fn(png_, this, on_read);
      png_set_user_limits(png_, kMostSide, kMostSide);
      if (!strict_) {
        png_set_crc_action(png_, PNG_CRC_QUIET_USE, PNG_CRC_DEFAULT);
        png_set_compression_buffer_size(png_, 1);  // else the last block of a file that ends early is lost
      }
      png_read_info(png_, info_);
    });
  }

  std::vector<std::array<uint8_t, 3>> palette() {
    png_colorp colours = nullptr;
    int count = 0;
    guarded([&] { png_get_PLTE(png_, info_, &colours, &count); });
    std::vector<std::array<uint8_t, 3>> result;
    for (int i = 0; i < count; ++i) result.push_back({colours[i].red, colours[i].green, colours[i].blue});
    return result;
  }

  // Of a damaged file, rows that can't be read stay 0. A file that only lacks its end has all pixels.
  void read_rows(png_bytepp rows) {
    bool complete = false;
    try {
      png_set_read_status_fn(png_, on_row);
      guarded([this, rows] { png_read_image(png_, rows); });
      complete = true;
      guarded([this] { png_read_end(png_, nullptr); });
    } catch (const Error&) {
      if (!(complete && ended_) && (strict_ || rows_ == 0)) throw;
    }
  }

  template <class Calls>
  void guarded(const Calls& calls) {
    if (setjmp(jump_) == 0) {
      calls();
      return;
    }
    throw Error(file_.string() + ": damaged PNG: " + message_.data());
  }

  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    auto& self = *static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::strncpy(self.message_.data(), text, self.message_.size() - 1);
    std::longjmp(self.jump_, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_row(png_structp png, png_uint_32, int) { ++static_cast<PngDecoder*>(png_get_error_ptr(png))->rows_; }
  static void on_read(png_structp png, png_bytep out, png_size_t count) {
    auto& self = *static_cast<PngDecoder*>(png_get_io_ptr(png));
    self.ended_ = count > self.rest_.size();
    if (self.ended_) png_error(png, "the file ends early");
    std::memcpy(out, self.rest_.data(), count);
    self.rest_ = self.rest_.subspan(count);
  }

  // As a viewer shows it on paper.
  static void put_on_white(const std::vector<uint8_t>& raw, std::size_t channels, Image& image) {
    const std::size_t colours = channels - 1;
    const std::size_t pixels = raw.size() / channels;
    for (std::size_t i = 0; i < pixels; ++i) {
      const unsigned alpha = raw[i * channels + colours];
      for (std::size_t c = 0; c < colours; ++c) {
        const unsigned value = raw[i * channels + c] * alpha + 255U * (255U - alpha);
        image.values[i * colours + c] = static_cast<uint8_t>((value + 127U) / 255U);
      }
    }
  }

  const std::filesystem::path& file_;
  int64_t most_pixels_;
  bool strict_;         // a lost pixel is an error
  bool ended_ = false;  // the file ended before its last chunk
  std::size_t rows_ = 0;
  std::span<const uint8_t> rest_;
  bool animated_ = false;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_ = {};
  std::array<char, 200> message_ = {};
};

}  // namespace

Image decode_png(std::span<const uint8_t> bytes, const std::filesystem::path& file, int64_t most_pixels,
                 Pixels pixels) {
  return PngDecoder(bytes, file, most_pixels, pixels).decode();
}

Picture decode_png_picture(std::span<const uint8_t> bytes, const std::filesystem::path& file, Pixels pixels) {
  return PngDecoder(bytes, file, kMostPixels, pixels).decode_picture(false);
}

Picture decode_png_as_stored(std::span<const uint8_t> bytes, const std::filesystem::path& file) {
  return PngDecoder(bytes, file, kMostPixels, Pixels::all).decode_picture(true);
}

ImageSides sides_of_png(std::span<const uint8_t> bytes, const std::filesystem::path& file) {
  // The first chunk, IHDR, begins with them.
  constexpr std::size_t kWidth = 16, kHeight = 20, kEnd = 24;
  if (bytes.size() < kEnd) throw Error(file.string() + ": damaged PNG: the file ends early");
  const ImageSides sides{big_endian(bytes.data() + kHeight), big_endian(bytes.data() + kWidth)};
  require_size(sides.height, sides.width, file, kMostPixels);
  return sides;
}

}  // namespace gpunn::data
