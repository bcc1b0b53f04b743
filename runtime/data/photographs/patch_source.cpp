#include "data/photographs/patch_source.hpp"

#include <gpunn/error.hpp>
#include <gpunn/random.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <zlib.h>

#include "data/philox_source.hpp"

namespace gpunn::data {

namespace {

using tasks::Planes;

// A square of an image: its first row and column, and its side.
struct Square {
  int64_t y = 0, x = 0, size = 0;
};

// The square, mirrored and turned: bit 0 of `position` mirrors it left to right, bit 1 top to bottom, bit 2 about the
// diagonal.
void copy_square(const Planes& image, const Square& square, uint32_t position, float* out) {
  const bool diagonal = (position & 4U) != 0;
  const int64_t last = square.size - 1;
  // From a pixel to the next of a row of the result, and from a row to the next.
  int64_t along = 1, down = image.width, first = square.y * image.width + square.x;
  if ((position & 1U) != 0) {
    first += last;
    along = -along;
  }
  if ((position & 2U) != 0) {
    first += last * image.width;
    down = -down;
  }
  if (diagonal) std::swap(along, down);
  for (int64_t c = 0; c < image.channels; ++c) {
    const float* const plane = image.channel(c).data();
    for (int64_t y = 0; y < square.size; ++y, out += square.size) {
      const float* const row = plane + first + y * down;
      if (along == 1) {
        std::memcpy(out, row, static_cast<std::size_t>(square.size) * sizeof(float));
      } else {
        for (int64_t x = 0; x < square.size; ++x) out[x] = row[x * along];
      }
    }
  }
}

uint32_t crc_of(const std::vector<ImagePair>& pairs) {
  uLong crc = 0;
  for (const ImagePair& pair : pairs) {
    for (const std::vector<float>* values : {&pair.input.values, &pair.target.values}) {
      const std::span<const std::byte> bytes = std::as_bytes(std::span(*values));
      crc = crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    }
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace

PatchSource::PatchSource(std::vector<ImagePair> pairs, const PatchSettings& settings) : settings_(settings) {
  const int64_t size = settings.input_size;
  uint64_t places = 0;
  for (ImagePair& pair : pairs) {
    if (pair.input.height < size || pair.input.width < size) {
      ++left_out_;
      continue;
    }
    places += static_cast<uint64_t>((pair.input.height - size + 1) * (pair.input.width - size + 1));
    places_.push_back(places);
    pairs_.push_back(std::move(pair));
  }
  if (pairs_.empty()) {
    const std::string target = std::to_string(size * settings.ratio);
    throw Error(
        "no training image holds a patch of " + target + " by " + target + " pixels; choose a smaller data.patch_size",
        ExitCode::usage);
  }
  digest_ = crc_of(pairs_);
}

int64_t PatchSource::read(int64_t step, std::span<std::byte> samples, std::span<std::byte> targets) {
  const int64_t channels = pairs_.front().input.channels, size = settings_.input_size;
  const int64_t target_size = size * settings_.ratio;
  const auto sample_bytes = static_cast<std::size_t>(channels * size * size) * sizeof(float);
  const auto target_bytes = static_cast<std::size_t>(channels * target_size * target_size) * sizeof(float);
  const auto rows = static_cast<int64_t>(samples.size() / sample_bytes);
  for (int64_t row = 0; row < rows; ++row) {
    const auto place = static_cast<std::size_t>(row);
    const gpunn_random_words random =
        gpunn_philox(settings_.seed, kPatchStream, static_cast<uint64_t>(step * rows + row));
    const uint64_t at = (uint64_t{random.word[0]} << 32 | random.word[1]) % places_.back();
    const auto found = std::ranges::upper_bound(places_, at) - places_.begin();
    const ImagePair& pair = pairs_[static_cast<std::size_t>(found)];
    const uint64_t before = found == 0 ? 0 : places_[static_cast<std::size_t>(found - 1)];
    const auto within = static_cast<int64_t>(at - before);
    const int64_t columns = pair.input.width - size + 1;
    const Square square{within / columns, within % columns, size};
    const uint32_t position = settings_.turns ? random.word[2] & 7U : 0;
    copy_square(pair.input, square, position, reinterpret_cast<float*>(samples.data() + place * sample_bytes));
    const int64_t ratio = settings_.ratio;
    copy_square(pair.target, {square.y * ratio, square.x * ratio, target_size}, position,
                reinterpret_cast<float*>(targets.data() + place * target_bytes));
  }
  return rows;
}

}  // namespace gpunn::data
