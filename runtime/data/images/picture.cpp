#include "data/images/picture.hpp"

#include <gpunn/error.hpp>

#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include <png.h>

#include "data/images/image.hpp"
#include "data/pack/files.hpp"

namespace gpunn::data {

namespace {

// Writes to memory. libpng reports an error by a call that must not return: it jumps back into write(), past C frames
// alone.
class PngEncoder {
 public:
  PngEncoder() {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, this, on_error, [](png_structp, png_const_charp) {});
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_write_struct(&png_, nullptr);
      throw Error("libpng can't start: out of memory or another version than it was compiled with");
    }
  }
  ~PngEncoder() { png_destroy_write_struct(&png_, &info_); }
  PngEncoder(const PngEncoder&) = delete;
  PngEncoder& operator=(const PngEncoder&) = delete;

  // Rows of bytes as the file has them: of 16 bits the higher byte first.
  std::string write(const Picture& picture, int colours, std::vector<png_bytep>& rows) {
    const Picture* const given = &picture;
    png_bytepp const row_pointers = rows.data();
    if (setjmp(jump_) != 0) throw Error(std::string("can't make a PNG: ") + message_.data());
    png_set_write_fn(png_, this, on_write, nullptr);
    png_set_IHDR(png_, info_, static_cast<png_uint_32>(given->width), static_cast<png_uint_32>(given->height),
                 given->bits, colours, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    for (const PngChunk& chunk : given->tags.chunks) {
      png_write_chunk(png_, reinterpret_cast<png_const_bytep>(chunk.type.data()),
                      reinterpret_cast<png_const_bytep>(chunk.bytes.data()), chunk.bytes.size());
    }
    png_write_image(png_, row_pointers);
    png_write_end(png_, nullptr);
    return std::move(bytes_);
  }

 private:
  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    auto& self = *static_cast<PngEncoder*>(png_get_error_ptr(png));
    std::strncpy(self.message_.data(), text, self.message_.size() - 1);
    std::longjmp(self.jump_, 1);
  }
  static void on_write(png_structp png, png_bytep bytes, png_size_t count) {
    static_cast<PngEncoder*>(png_get_io_ptr(png))->bytes_.append(reinterpret_cast<const char*>(bytes), count);
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_ = {};
  std::array<char, 200> message_ = {};
  std::string bytes_;
};

}  // namespace

std::vector<std::string> Picture::notes(bool grey) const {
  std::vector<std::string> result;
  if (std::string note = tags.for_picture(grey).note; !note.empty()) result.push_back(std::move(note));
  if (first_frame) result.emplace_back("it is an animation: the result is of its first frame");
  return result;
}

Picture read_picture(const std::filesystem::path& file, std::string* damage) {
  const files::Content content = files::read(file, kMostImageFileBytes);
  const std::span<const uint8_t> bytes = content.bytes();
  Picture picture;
  if (content.text().starts_with("\x89PNG")) {
    picture = decoded(damage, [&](Pixels pixels) { return decode_png_picture(bytes, file, pixels); });
  } else {
    picture = decode_pnm_picture(bytes, file);
    if (picture.values.empty()) {
      const Image image = decode_image(bytes, file, kMostPixels, damage);
      picture = {image.height, image.width, image.channels, 8, {image.values.begin(), image.values.end()}};
    }
  }
  picture.tags = colour_tags_of(bytes);
  return picture;
}

std::string encode_png(const Picture& picture) {
  const bool alpha = !picture.opacity.empty();
  const auto channels = static_cast<std::size_t>(picture.channels), all = channels + (alpha ? 1 : 0);
  const std::size_t size = picture.bits == 16 ? 2 : 1;
  const std::size_t row_bytes = static_cast<std::size_t>(picture.width) * all * size;
  std::vector<uint8_t> bytes;
  bytes.reserve(row_bytes * static_cast<std::size_t>(picture.height));
  const auto put = [&](uint16_t value) {
    if (size == 2) bytes.push_back(static_cast<uint8_t>(value >> 8U));
    bytes.push_back(static_cast<uint8_t>(value & 0xFFU));
  };
  for (std::size_t i = 0; i < picture.values.size() / channels; ++i) {
    for (std::size_t c = 0; c < channels; ++c) put(picture.values[i * channels + c]);
    if (alpha) put(picture.opacity[i]);
  }
  std::vector<png_bytep> rows;
  for (std::size_t y = 0; y < static_cast<std::size_t>(picture.height); ++y)
    rows.push_back(bytes.data() + y * row_bytes);
  const int colours = (channels == 3 ? PNG_COLOR_MASK_COLOR : 0) | (alpha ? PNG_COLOR_MASK_ALPHA : 0);
  return PngEncoder().write(picture, colours, rows);
}

}  // namespace gpunn::data
