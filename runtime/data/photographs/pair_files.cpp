#include "data/photographs/pair_files.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <utility>

#include <zlib.h>

#include "data/pack/files.hpp"
#include "data/parallel.hpp"
#include "tasks/super_resolution/bicubic.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kHeadersAtATime = 16;

ImageSides input_of(ImageSides image, const PhotographSet& settings) {
  const int64_t ratio = settings.input == ModelInput::small ? settings.scale : 1;
  return {image.height / settings.scale * settings.scale / ratio,
          image.width / settings.scale * settings.scale / ratio};
}

struct Header {
  ImageSides sides;
  uint64_t bytes = 0;
};

std::vector<Header> headers_of(const std::vector<fs::path>& files) {
  std::vector<Header> headers(files.size());
  for_row_stretches(static_cast<int64_t>(files.size()), kHeadersAtATime, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      const files::Content content = files::read(files[i], kMostImageFileBytes);
      headers[i] = {sides_of_image(content.bytes(), files[i]), content.bytes().size()};
    }
  });
  return headers;
}

}  // namespace

PairFiles::PairFiles(const std::vector<fs::path>& folders, const fs::path& small_folder, const PhotographSet& settings)
    : settings_(settings) {
  uLong crc = 0;
  for (const fs::path& folder : folders) {
    const std::vector<fs::path> files = photographs_beneath(folder);
    const std::vector<Header> headers = headers_of(files);
    for (std::size_t i = 0; i < files.size(); ++i) {
      const fs::path below = files[i].lexically_relative(folder);
      const std::string told = below.string() + '\n' + std::to_string(headers[i].bytes) + '\n';
      crc = crc32_z(crc, reinterpret_cast<const Bytef*>(told.data()), told.size());
      Pair pair{.file = files[i],
                .small = small_folder.empty() ? fs::path() : small_folder / below,
                .name = fs::path(below).replace_extension().string(),
                .input = input_of(headers[i].sides, settings)};
      pairs_.push_back(pair);
      if (!small_folder.empty()) continue;
      for (const double factor : settings.also_scaled) {
        const ImageSides other{tasks::resized_side(headers[i].sides.height, factor),
                               tasks::resized_side(headers[i].sides.width, factor)};
        if (std::min(other.height, other.width) < settings.scale) continue;
        pair.factor = factor;
        pair.input = input_of(other, settings);
        pairs_.push_back(pair);
      }
    }
  }
  digest_ = static_cast<uint32_t>(crc);
}

uint64_t PairFiles::bytes(std::size_t pair) const {
  const auto pixels = static_cast<uint64_t>(pairs_[pair].input.height * pairs_[pair].input.width);
  const auto ratio = static_cast<uint64_t>(settings_.input == ModelInput::small ? settings_.scale : 1);
  const uint64_t channels = settings_.colours == ColourPlanes::luma ? 1 : 3;
  return channels * pixels * (1 + ratio * ratio) * sizeof(float);
}

uint64_t PairFiles::bytes() const {
  uint64_t sum = 0;
  for (std::size_t i = 0; i < pairs_.size(); ++i) sum += bytes(i);
  return sum;
}

ImagePair PairFiles::read(std::size_t pair) const {
  const Pair& one = pairs_[pair];
  tasks::Planes image = planes_of(read_image_file(one.file), settings_.colours);
  if (one.factor < 1) image = in_other_size(image, one.factor);
  ImagePair found = one.small.empty() ? degraded_pair(one.name, image, settings_)
                                      : given_pair(one.name, image,
                                                   planes_of(read_image_file(one.small), settings_.colours), settings_);
  if (found.input.height != one.input.height || found.input.width != one.input.width) {
    throw Error(one.file.string() + ": the image has changed since the data set was opened");
  }
  return found;
}

}  // namespace gpunn::data
