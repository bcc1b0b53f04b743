#include "data/image_rows.hpp"

#include <gpunn/error.hpp>

#include <string>
#include <system_error>
#include <utility>

#include <zlib.h>

#include "data/pack/files.hpp"
#include "data/variation/sample_variation.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

std::string size_text(int64_t height, int64_t width) {
  return std::to_string(width) + " by " + std::to_string(height) + " pixels";
}

}  // namespace

Image sample_image(Image image, const fs::path& file, const SampleForm& form) {
  if (form.channels != 0) image = convert_channels(std::move(image), form.channels);
  if (form.scaled) return resize_and_crop(image, form.height, form.width, form.shorter_side);
  if (image.height == form.height && image.width == form.width) return image;
  throw Error(file.string() + ": expected an image of " + size_text(form.height, form.width) + " as " +
              form.like.string() + ", found " + size_text(image.height, image.width) +
              "; all must have one size, or set data.image_size: [rows, columns] to have them scaled");
}

ImageRows::ImageRows(std::vector<fs::path> files, SampleForm form) : files_(std::move(files)), form_(std::move(form)) {
  bytes_.reserve(files_.size());
  for (const fs::path& file : files_) bytes_.push_back(files::size(file));
}

void ImageRows::read(int64_t row, SampleDraw* draw, std::span<std::byte> sample) const {
  const fs::path& file = files_[static_cast<std::size_t>(row)];
  const files::Content content = files::read(file, kMostImageFileBytes);
  const std::span<const uint8_t> bytes = content.bytes();
  if (bytes.size() != bytes_[static_cast<std::size_t>(row)]) {
    throw Error(file.string() + ": the file has " + std::to_string(bytes.size()) + " bytes, and had " +
                std::to_string(bytes_[static_cast<std::size_t>(row)]) +
                " when the data set was opened. Leave the folder as it is while it is read; `gpunn resume` goes on "
                "from the last checkpoint");
  }
  if (draw == nullptr || !draw->crops()) {
    Image image = sample_image(decode_image(bytes, file), file, form_);
    if (draw != nullptr) draw->change(image);
    write_planes(image, sample.data());
    return;
  }
  const auto choose = [&](int64_t height, int64_t width) { return draw->crop(height, width); };
  Image image = convert_channels(decode_region(bytes, file, choose, form_.height, form_.width), form_.channels);
  draw->change(image);
  write_planes(image, sample.data());
}

uint32_t ImageRows::digest(std::span<const int64_t> rows) const {
  uLong crc = 0;
  for (const int64_t row : rows) {
    const std::string line = files_[static_cast<std::size_t>(row)].filename().string() + ' ' +
                             std::to_string(bytes_[static_cast<std::size_t>(row)]) + '\n';
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(line.data()), line.size());
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace gpunn::data
