#include "data/photographs/pair_files.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include <zlib.h>

#include "common/parallel.hpp"
#include "data/images/bicubic.hpp"
#include "data/pack/files.hpp"

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
      try {
        const files::Content content = files::read(files[i], kMostImageFileBytes);
        headers[i] = {sides_of_image(content.bytes(), files[i]), content.bytes().size()};
      } catch (const Error&) {
        headers[i] = {};
      }
    }
  });
  return headers;
}

}  // namespace

PairFiles::PairFiles(const std::vector<PhotographFolder>& folders, const PhotographSet& settings, Damaged policy)
    : settings_(settings), policy_(policy) {
  for (const PhotographFolder& one : folders) {
    const fs::path &folder = one.folder, &small_folder = one.small;
    const std::vector<fs::path> files = photographs_of(one);
    const std::vector<Header> headers = headers_of(files);
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (headers[i].bytes == 0) {
        without_header_.push_back(files[i]);
        continue;
      }
      const fs::path below = files[i].lexically_relative(folder);
      Pair pair{.file = files[i],
                .small = small_folder.empty() ? fs::path() : small_folder / below,
                .name = fs::path(below).replace_extension().string(),
                .told = below.string() + '\n' + std::to_string(headers[i].bytes) + '\n',
                .input = input_of(headers[i].sides, settings)};
      pairs_.push_back(pair);
      if (!small_folder.empty()) continue;
      for (const double factor : settings.also_scaled) {
        const ImageSides other{resized_side(headers[i].sides.height, factor),
                               resized_side(headers[i].sides.width, factor)};
        if (std::min(other.height, other.width) < settings.scale) continue;
        pair.factor = factor;
        pair.input = input_of(other, settings);
        pairs_.push_back(pair);
      }
    }
  }
}

std::vector<fs::path> PairFiles::all_files() const {
  std::set<fs::path> files(without_header_.begin(), without_header_.end());
  for (const Pair& pair : pairs_) {
    files.insert(pair.file);
    if (!pair.small.empty()) files.insert(pair.small);
  }
  return {files.begin(), files.end()};
}

void PairFiles::check(DamagedFiles& damaged) {
  if (policy_ == Damaged::error && without_header_.empty()) return;
  damaged.search(all_files());
  std::set<fs::path> lost;
  for (const DamagedImage& image : damaged.found()) {
    if (!image.repaired) lost.insert(image.file);
  }
  std::erase_if(pairs_, [&](const Pair& pair) { return lost.contains(pair.file) || lost.contains(pair.small); });
}

void PairFiles::refuse_all_damaged() const {
  if (policy_ == Damaged::error) refuse_damaged(all_files(), "the training part");
}

uint32_t PairFiles::digest() const {
  uLong crc = 0;
  for (const Pair& pair : pairs_) {
    if (pair.factor < 1) continue;
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(pair.told.data()), pair.told.size());
  }
  return static_cast<uint32_t>(crc);
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
  std::string damage;  // known since the data set was opened
  std::string* const repair = policy_ == Damaged::repair ? &damage : nullptr;
  Planes image = planes_of(read_image_file(one.file, repair), settings_.colours);
  if (one.factor < 1) image = in_other_size(image, one.factor);
  ImagePair found =
      one.small.empty()
          ? degraded_pair(one.name, image, settings_)
          : given_pair(one.name, image, planes_of(read_image_file(one.small, repair), settings_.colours), settings_);
  if (found.input.height != one.input.height || found.input.width != one.input.width) {
    throw Error(one.file.string() + ": the image has changed since the data set was opened");
  }
  return found;
}

}  // namespace gpunn::data
