#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <utility>
#include <vector>

#include <jpeglib.h>
// After jpeglib.h, which it needs.
#include <jerror.h>

#include "data/images/image.hpp"

namespace gpunn::data {

namespace {

constexpr int kMostScans = 256;  // a progressive file may repeat scans to burn time

// Pixels of cyan, magenta, yellow and black, each 255 where there is no ink, as Adobe's programs write them. Pillow
// reads all such files so.
void inks_to_rgb(const uint8_t* inks, uint8_t* rgb, std::size_t pixels) {
  constexpr uint32_t kWhite = 255;
  for (std::size_t i = 0; i < pixels; ++i, inks += 4, rgb += 3) {
    for (std::size_t c = 0; c < 3; ++c) {
      rgb[c] = static_cast<uint8_t>((uint32_t{inks[c]} * inks[3] + kWhite / 2) / kWhite);
    }
  }
}

// Warnings after which pixels are not those of the picture. Others are of data that no pixel needs, such as stray bytes
// between segments, an unknown revision of JFIF or a damaged colour profile.
bool loses_pixels(int warning) {
  switch (warning) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
      return true;
    default:
      return false;
  }
}

// libjpeg reports an error by a call that must not return. It jumps back into guarded(), past C frames alone: what
// guarded() is given must hold no object with a destructor.
class JpegDecoder {
 public:
  JpegDecoder(std::span<const uint8_t> bytes, const std::filesystem::path& file, int64_t most_pixels,
              Pixels pixels = Pixels::all)
      : file_(file), most_pixels_(most_pixels), strict_(pixels == Pixels::all), bytes_(bytes) {
    jpeg_.err = jpeg_std_error(&errors_);
    jpeg_.client_data = this;
    errors_.error_exit = on_error;
    errors_.emit_message = on_message;
    progress_.progress_monitor = on_progress;
    guarded([this] { jpeg_create_decompress(&jpeg_); });
    jpeg_.progress = &progress_;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&jpeg_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  ImageSides sides() {
    read_header();
    require_size(jpeg_.image_height, jpeg_.image_width, file_, most_pixels_);
    return {jpeg_.image_height, jpeg_.image_width};
  }

  Image decode() {
    read_header();
    Image image = make_image(jpeg_.image_height, jpeg_.image_width, channels(), file_, most_pixels_);
    uint8_t* target = image.values.data();
    const auto row_bytes = static_cast<std::size_t>(image.width * image.channels);
    const auto read = [this, target, row_bytes] {
      jpeg_start_decompress(&jpeg_);
      require_scans();
      while (jpeg_.output_scanline < jpeg_.output_height) read_row(target + row_bytes * jpeg_.output_scanline);
      jpeg_finish_decompress(&jpeg_);
    };
    if (strict_) {
      guarded(read);
    } else {
      guarded_or_partly(read, image);
    }
    return image;
  }

  Image decode_region(const RegionChoice& choose, int64_t height, int64_t width, ScaledRegion& found) {
    read_header();
    const int64_t rows = jpeg_.image_height, columns = jpeg_.image_width;
    require_size(rows, columns, file_, most_pixels_);
    const ImageRegion part = choose(rows, columns);
    jpeg_.scale_denom = kWholeScale;
    jpeg_.scale_num = kWholeScale;
    while (jpeg_.scale_num > 1 && part.height * jpeg_.scale_num >= 2 * kWholeScale * height &&
           part.width * jpeg_.scale_num >= 2 * kWholeScale * width) {
      jpeg_.scale_num /= 2;
    }
    guarded([this] {
      jpeg_start_decompress(&jpeg_);
      require_scans();
    });
    const auto scaled = [this](int64_t place) {
      return static_cast<double>(place) * static_cast<double>(jpeg_.scale_num) / kWholeScale;
    };
    // Colours are stored at half the size; what lies beyond the part has a share in those at its edge.
    constexpr int64_t kBeside = 4;
    const auto span_of = [&](int64_t from, int64_t count, int64_t size) {
      const int64_t first = std::max<int64_t>(static_cast<int64_t>(scaled(from)) - kBeside, 0);
      const auto end = static_cast<int64_t>(std::ceil(scaled(from + count))) + kBeside;
      return std::pair(first, std::max<int64_t>(std::min(end, size) - first, 1));
    };
    const auto [first_row, row_count] = span_of(part.top, part.height, jpeg_.output_height);
    const auto [first_column, column_count] = span_of(part.left, part.width, jpeg_.output_width);
    auto left = static_cast<JDIMENSION>(first_column), kept = static_cast<JDIMENSION>(column_count);
    const auto top = static_cast<JDIMENSION>(first_row);
    guarded([this, top, &left, &kept] {
      if (kept < jpeg_.output_width) jpeg_crop_scanline(&jpeg_, &left, &kept);
      if (top > 0) jpeg_skip_scanlines(&jpeg_, top);
    });
    Image image = make_image(row_count, jpeg_.output_width, channels(), file_);
    uint8_t* target = image.values.data();
    const auto row_bytes = static_cast<std::size_t>(image.width * image.channels);
    const JDIMENSION end = top + static_cast<JDIMENSION>(row_count);
    const auto read = [this, target, row_bytes, top, end] {
      while (jpeg_.output_scanline < end) read_row(target + row_bytes * (jpeg_.output_scanline - top));
    };
    if (strict_) {
      guarded(read);
    } else {
      guarded_or_partly(read, image);
    }
    const auto x = static_cast<double>(left), y = static_cast<double>(top);
    found = {scaled(part.top) - y, scaled(part.left) - x,
             std::min(scaled(part.top + part.height) - y, static_cast<double>(image.height)),
             std::min(scaled(part.left + part.width) - x, static_cast<double>(image.width))};
    return image;
  }

 private:
  static constexpr unsigned kWholeScale = 8;

  // Within guarded().
  void read_row(uint8_t* target) {
    JSAMPROW row = inks_.empty() ? target : inks_.data();
    jpeg_read_scanlines(&jpeg_, &row, 1);
    ++rows_;
    if (!inks_.empty()) inks_to_rgb(inks_.data(), target, jpeg_.output_width);
  }

  int64_t channels() const { return jpeg_.out_color_space == JCS_GRAYSCALE ? 1 : 3; }

  void read_header() {
    guarded([this] {
      jpeg_mem_src(&jpeg_, bytes_.data(), static_cast<unsigned long>(bytes_.size()));
      jpeg_read_header(&jpeg_, TRUE);
    });
    jpeg_.out_color_space = jpeg_.jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    if (jpeg_.jpeg_color_space == JCS_CMYK || jpeg_.jpeg_color_space == JCS_YCCK) {
      jpeg_.out_color_space = JCS_CMYK;
      inks_.resize(std::size_t{4} * jpeg_.image_width);
    }
  }

  template <class Calls>
  void guarded(const Calls& calls) {
    if (setjmp(jump_) == 0) {
      calls();
      return;
    }
    jpeg_destroy_decompress(&jpeg_);
    throw Error(file_.string() + ": damaged JPEG: " + message_.data());
  }

  // As guarded(), but an error after the first rows leaves the others grey, as libjpeg fills what a file lacks.
  template <class Calls>
  void guarded_or_partly(const Calls& calls, Image& image) {
    constexpr uint8_t kMiddle = 128;
    try {
      guarded(calls);
    } catch (const Error&) {
      if (rows_ == 0) throw;
      const std::size_t done = rows_ * static_cast<std::size_t>(image.width * image.channels);
      std::fill(image.values.begin() + static_cast<std::ptrdiff_t>(done), image.values.end(), kMiddle);
    }
  }

  // Within guarded(): libjpeg warns of missing rows, but not of missing scans, each of which refines the whole picture.
  // A file that ends after its last scan lacks no pixels.
  void require_scans() {
    if (!strict_ || !ended_ || jpeg_has_multiple_scans(&jpeg_) == FALSE) return;
    bool complete = jpeg_.coef_bits != nullptr;
    for (int c = 0; complete && c < jpeg_.num_components; ++c) {
      for (int k = 0; k < DCTSIZE2; ++k) complete = complete && jpeg_.coef_bits[c][k] == 0;
    }
    if (!complete) ERREXIT(&jpeg_, JWRN_JPEG_EOF);
  }

  [[noreturn]] static void on_error(j_common_ptr jpeg) {
    auto& self = *static_cast<JpegDecoder*>(jpeg->client_data);
    jpeg->err->format_message(jpeg, self.message_.data());
    std::longjmp(self.jump_, 1);
  }

  // A level of -1 is a warning. libjpeg papers over damaged data with grey.
  static void on_message(j_common_ptr jpeg, int level) {
    if (level != -1) return;
    auto& self = *static_cast<JpegDecoder*>(jpeg->client_data);
    self.ended_ = self.ended_ || jpeg->err->msg_code == JWRN_JPEG_EOF;
    if (self.strict_ && loses_pixels(jpeg->err->msg_code)) on_error(jpeg);
  }

  static void on_progress(j_common_ptr jpeg) {
    auto& self = *static_cast<JpegDecoder*>(jpeg->client_data);
    if (self.jpeg_.input_scan_number <= kMostScans) return;
    std::snprintf(self.message_.data(), self.message_.size(), "more than %d scans", kMostScans);
    std::longjmp(self.jump_, 1);
  }

  const std::filesystem::path& file_;
  int64_t most_pixels_;
  bool strict_;         // a lost pixel is an error
  bool ended_ = false;  // the file ended before its end marker
  std::size_t rows_ = 0;
  std::span<const uint8_t> bytes_;
  jpeg_decompress_struct jpeg_ = {};
  jpeg_error_mgr errors_ = {};
  jpeg_progress_mgr progress_ = {};
  std::jmp_buf jump_ = {};
  std::array<char, JMSG_LENGTH_MAX> message_ = {};
  std::vector<uint8_t> inks_;  // a row of an image in CMYK, which is turned to RGB
};

}  // namespace

Image decode_jpeg(std::span<const uint8_t> bytes, const std::filesystem::path& file, int64_t most_pixels,
                  Pixels pixels) {
  return JpegDecoder(bytes, file, most_pixels, pixels).decode();
}

ImageSides sides_of_jpeg(std::span<const uint8_t> bytes, const std::filesystem::path& file) {
  return JpegDecoder(bytes, file, kMostPixels).sides();
}

Image decode_jpeg_region(std::span<const uint8_t> bytes, const std::filesystem::path& file, const RegionChoice& choose,
                         int64_t height, int64_t width, ScaledRegion& found, Pixels pixels) {
  return JpegDecoder(bytes, file, kMostPixels, pixels).decode_region(choose, height, width, found);
}

}  // namespace gpunn::data
