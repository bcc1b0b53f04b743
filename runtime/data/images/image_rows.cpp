#include "data/images/image_rows.hpp"

#include <gpunn/error.hpp>

#include <string>
#include <system_error>
#include <utility>

#include <zlib.h>

#include "data/folders/damaged_files.hpp"
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

ImageRows::ImageRows(std::vector<fs::path> files, SampleForm form, Damaged damaged)
    : files_(std::move(files)), form_(std::move(form)), damaged_(damaged) {
  bytes_.reserve(files_.size());
  bool all_there = true;
  for (const fs::path& file : files_) {
    try {
      bytes_.push_back(files::size(file));
    } catch (const Error&) {  // the search for damaged files names it with all others
      bytes_.push_back(0);
      all_there = false;
    }
  }
  if (!all_there && damaged_ == Damaged::error) refuse_all_damaged();
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
  Image image = decoded(bytes, static_cast<std::size_t>(row), draw);
  const bool whole = draw == nullptr || !draw->crops();
  image = whole ? sample_image(std::move(image), file, form_) : convert_channels(std::move(image), form_.channels);
  if (draw != nullptr) draw->change(image);
  write_planes(image, sample.data());
}

Image ImageRows::decoded(std::span<const uint8_t> bytes, std::size_t row, SampleDraw* draw) const {
  std::string damage;  // known since the data set was opened
  std::string* const repair = damaged_ == Damaged::repair ? &damage : nullptr;
  try {
    if (draw == nullptr || !draw->crops()) return decode_image(bytes, files_[row], kMostPixels, repair);
    const auto choose = [&](int64_t height, int64_t width) { return draw->crop(height, width); };
    return decode_region(bytes, files_[row], choose, form_.height, form_.width, repair);
  } catch (const Error&) {
    if (damaged_ != Damaged::error) throw;
    refuse_all_damaged();
  }
}

// One pass over all files costs less than a run for each damaged file.
void ImageRows::refuse_all_damaged() const {
  std::call_once(searched_, [&] {
    try {
      data::refuse_damaged(files_, files_.front().parent_path().parent_path().string());
    } catch (const Error& error) {
      all_damaged_ = error.what();
    }
  });
  throw Error(all_damaged_);
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
