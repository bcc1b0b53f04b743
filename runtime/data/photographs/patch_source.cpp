#include "data/photographs/patch_source.hpp"

#include <gpunn/error.hpp>
#include <gpunn/random.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <zlib.h>

#include "data/synthetic/philox_source.hpp"

namespace gpunn::data {

namespace {

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

int64_t PatchSettings::rows_in(std::span<const std::byte> samples) const {
  return static_cast<int64_t>(samples.size() /
                              (static_cast<std::size_t>(channels * input_size * input_size) * sizeof(float)));
}

uint64_t places_in(ImageSides image, int64_t input_size) {
  if (image.height < input_size || image.width < input_size) return 0;
  return static_cast<uint64_t>((image.height - input_size + 1) * (image.width - input_size + 1));
}

void cut_patch(const ImagePair& pair, uint64_t place, uint32_t position, const PatchSettings& settings, int64_t row,
               std::span<std::byte> samples, std::span<std::byte> targets) {
  const int64_t size = settings.input_size, ratio = settings.ratio, target_size = size * ratio;
  const auto columns = static_cast<uint64_t>(pair.input.width - size + 1);
  const Square square{static_cast<int64_t>(place / columns), static_cast<int64_t>(place % columns), size};
  const uint32_t turned = settings.turns ? position & 7U : 0;
  const auto row_of = [&](std::span<std::byte> array, int64_t side) {
    return reinterpret_cast<float*>(array.data()) + row * settings.channels * side * side;
  };
  copy_square(pair.input, square, turned, row_of(samples, size));
  copy_square(pair.target, {square.y * ratio, square.x * ratio, target_size}, turned, row_of(targets, target_size));
}

void refuse_patch_size(const PatchSettings& settings) {
  const std::string side = std::to_string(settings.input_size * settings.ratio);
  throw Error(
      "no training image holds a patch of " + side + " by " + side + " pixels; choose a smaller data.patch_size",
      ExitCode::usage);
}

PatchSource::PatchSource(std::vector<ImagePair> pairs, const PatchSettings& settings) : settings_(settings) {
  uint64_t places = 0;
  for (ImagePair& pair : pairs) {
    const uint64_t found = places_in({pair.input.height, pair.input.width}, settings.input_size);
    if (found == 0) {
      ++left_out_;
      continue;
    }
    places += found;
    places_.push_back(places);
    pairs_.push_back(std::move(pair));
  }
  if (pairs_.empty()) refuse_patch_size(settings);
  digest_ = crc_of(pairs_);
}

int64_t PatchSource::read(int64_t step, const BatchRoom& room) {
  const std::span<std::byte> samples = room.samples, targets = room.fields.front();
  const int64_t rows = settings_.rows_in(samples);
  for (int64_t row = 0; row < rows; ++row) {
    const gpunn_random_words random =
        gpunn_philox(settings_.seed, kPatchStream, static_cast<uint64_t>(step * rows + row));
    const uint64_t at = (uint64_t{random.word[0]} << 32 | random.word[1]) % places_.back();
    const auto found = static_cast<std::size_t>(std::ranges::upper_bound(places_, at) - places_.begin());
    const uint64_t before = found == 0 ? 0 : places_[found - 1];
    cut_patch(pairs_[found], at - before, random.word[2], settings_, row, samples, targets);
  }
  return rows;
}

}  // namespace gpunn::data
