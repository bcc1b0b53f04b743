#include "data/photographs/streamed_patches.hpp"

#include <gpunn/error.hpp>
#include <gpunn/random.h>

#include <algorithm>
#include <span>
#include <utility>

#include "common/parallel.hpp"
#include "data/synthetic/philox_source.hpp"

namespace gpunn::data {

namespace {

// These decide which patches a step has, so they hang on the data alone and not on the machine.
constexpr std::size_t kMostAtATime = 64, kFewestAtATime = 2;
constexpr uint64_t kBytesAtATime = uint64_t{1} << 30;
constexpr int64_t kPatchesOfEach = 256;

}  // namespace

StreamedPatches::StreamedPatches(PairFiles files, const PatchSettings& settings)
    : files_(std::move(files)), settings_(settings) {
  uint64_t places = 0, largest = 1;
  for (std::size_t i = 0; i < files_.pairs(); ++i) {
    const uint64_t found = places_in(files_.input_sides(i), settings_.input_size);
    if (found == 0) {
      ++left_out_;
      continue;
    }
    places += found;
    largest = std::max(largest, files_.bytes(i));
    large_enough_.push_back(i);
    places_.push_back(places);
  }
  if (places_.empty()) refuse_patch_size(settings_);
  at_a_time_ = std::clamp(static_cast<std::size_t>(kBytesAtATime / largest), kFewestAtATime, kMostAtATime);
  at_a_time_ = std::min(at_a_time_, large_enough_.size());
}

StreamedPatches::~StreamedPatches() = default;

StreamedPatches::Window StreamedPatches::load(int64_t number) const {
  Window window{number, std::vector<ImagePair>(at_a_time_)};
  const auto read = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const auto draw = static_cast<uint64_t>(number) * at_a_time_ + static_cast<uint64_t>(i);
      const gpunn_random_words random = gpunn_philox(settings_.seed, kPatchImageStream, draw);
      const uint64_t at = (uint64_t{random.word[0]} << 32 | random.word[1]) % places_.back();
      const auto found = static_cast<std::size_t>(std::ranges::upper_bound(places_, at) - places_.begin());
      window.pairs[static_cast<std::size_t>(i)] = files_.read(large_enough_[found]);
    }
  };
  try {
    for_row_stretches(static_cast<int64_t>(at_a_time_), 1, read);
  } catch (const Error&) {
    files_.refuse_all_damaged();
    throw;
  }
  return window;
}

void StreamedPatches::go_to(int64_t number) {
  if (now_.number == number) return;
  if (next_.valid()) now_ = next_.get();
  if (now_.number != number) now_ = load(number);
  next_ = std::async(std::launch::async, [this, number] { return load(number + 1); });
}

int64_t StreamedPatches::read(int64_t step, const BatchRoom& room) {
  const std::span<std::byte> samples = room.samples, targets = room.fields.front();
  const int64_t rows = settings_.rows_in(samples);
  go_to(step * rows / (static_cast<int64_t>(at_a_time_) * kPatchesOfEach));
  for (int64_t row = 0; row < rows; ++row) {
    const gpunn_random_words random =
        gpunn_philox(settings_.seed, kPatchStream, static_cast<uint64_t>(step * rows + row));
    // Large photographs are chosen for a window more often, so within it all are alike.
    const ImagePair& pair = now_.pairs[random.word[0] % at_a_time_];
    const uint64_t places = places_in({pair.input.height, pair.input.width}, settings_.input_size);
    const uint64_t place = (uint64_t{random.word[1]} << 32 | random.word[3]) % places;
    cut_patch(pair, place, random.word[2], settings_, row, samples, targets);
  }
  return rows;
}

}  // namespace gpunn::data
