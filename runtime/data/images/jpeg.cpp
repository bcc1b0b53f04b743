#include <gpunn/error.hpp>

#include <array>
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>
// After jpeglib.h, which it needs.
#include <jerror.h>

#include "data/images/image.hpp"

namespace gpunn::data {

namespace {

constexpr int kMostScans = 256;  // a progressive file may repeat scans to burn time

// libjpeg reports an error by a call that must not return. It jumps back into guarded(), past C frames alone: what
// guarded() is given must hold no object with a destructor.
class JpegDecoder {
 public:
  JpegDecoder(std::span<const uint8_t> bytes, const std::filesystem::path& file, int64_t most_pixels)
      : file_(file), most_pixels_(most_pixels), bytes_(bytes) {
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

  Image decode() {
    guarded([this] {
      jpeg_mem_src(&jpeg_, bytes_.data(), static_cast<unsigned long>(bytes_.size()));
      jpeg_read_header(&jpeg_, TRUE);
    });
    if (jpeg_.jpeg_color_space == JCS_CMYK || jpeg_.jpeg_color_space == JCS_YCCK) {
      throw Error(file_.string() + ": the JPEG is in CMYK (for print); expected grey or colour. Save it as RGB");
    }
    const bool grey = jpeg_.jpeg_color_space == JCS_GRAYSCALE;
    Image image = make_image(jpeg_.image_height, jpeg_.image_width, grey ? 1 : 3, file_, most_pixels_);
    jpeg_.out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
    uint8_t* target = image.values.data();
    const auto row_bytes = static_cast<std::size_t>(image.width * image.channels);
    guarded([this, target, row_bytes] {
      jpeg_start_decompress(&jpeg_);
      while (jpeg_.output_scanline < jpeg_.output_height) {
        JSAMPROW row = target + row_bytes * jpeg_.output_scanline;
        jpeg_read_scanlines(&jpeg_, &row, 1);
      }
      jpeg_finish_decompress(&jpeg_);
    });
    return image;
  }

 private:
  template <class Calls>
  void guarded(const Calls& calls) {
    if (setjmp(jump_) == 0) {
      calls();
      return;
    }
    jpeg_destroy_decompress(&jpeg_);
    throw Error(file_.string() + ": damaged JPEG: " + message_.data());
  }

  [[noreturn]] static void on_error(j_common_ptr jpeg) {
    auto& self = *static_cast<JpegDecoder*>(jpeg->client_data);
    jpeg->err->format_message(jpeg, self.message_.data());
    std::longjmp(self.jump_, 1);
  }

  // A level of -1 is a warning of damaged data, which libjpeg papers over with grey. Stray bytes between segments are
  // common and harmless.
  static void on_message(j_common_ptr jpeg, int level) {
    if (level == -1 && jpeg->err->msg_code != JWRN_EXTRANEOUS_DATA) on_error(jpeg);
  }

  static void on_progress(j_common_ptr jpeg) {
    auto& self = *static_cast<JpegDecoder*>(jpeg->client_data);
    if (self.jpeg_.input_scan_number <= kMostScans) return;
    std::snprintf(self.message_.data(), self.message_.size(), "more than %d scans", kMostScans);
    std::longjmp(self.jump_, 1);
  }

  const std::filesystem::path& file_;
  int64_t most_pixels_;
  std::span<const uint8_t> bytes_;
  jpeg_decompress_struct jpeg_ = {};
  jpeg_error_mgr errors_ = {};
  jpeg_progress_mgr progress_ = {};
  std::jmp_buf jump_ = {};
  std::array<char, JMSG_LENGTH_MAX> message_ = {};
};

}  // namespace

Image decode_jpeg(std::span<const uint8_t> bytes, const std::filesystem::path& file, int64_t most_pixels) {
  return JpegDecoder(bytes, file, most_pixels).decode();
}

}  // namespace gpunn::data
