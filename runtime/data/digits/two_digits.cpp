// Two digits side by side on a canvas of 28x56, at places that vary. The labels of an image are the digits in it, so
// one or two of ten. Samples u8 [rows, 1, 28, 56]. The seed decides every pixel.
#include <gpunn/progress.hpp>

#include <algorithm>
#include <string>

#include "common/parallel.hpp"
#include "data/digits/digits.hpp"
#include "data/registry.hpp"
#include "data/rows/room.hpp"
#include "data/synthetic/synthetic.hpp"
#include "fields/kind.hpp"
#include "fields/values.hpp"

namespace gpunn::data {

namespace {

constexpr int64_t kPairTrainRows = 10000;
constexpr int64_t kPairTestRows = 2000;
constexpr int kPairWidth = 2 * kDigitSize;
constexpr uint32_t kMostInwards = 8;  // columns that a digit is moved towards the middle
constexpr int64_t kPairsAtATime = 256;

// The lighter of the two where they meet.
void put(const DigitImage& digit, int left, std::byte* canvas) {
  for (int y = 0; y < kDigitSize; ++y) {
    for (int x = 0; x < kDigitSize; ++x) {
      std::byte& pixel = canvas[y * kPairWidth + left + x];
      pixel = std::max(pixel, std::byte{digit[static_cast<std::size_t>(y * kDigitSize + x)]});
    }
  }
}

Split make_pairs(uint64_t seed, uint64_t stream, const TensorType& samples) {
  Split split;
  split.samples = samples;
  data::make_room(split);
  const int64_t rows = split.rows();
  std::vector<float> labels(static_cast<std::size_t>(rows * kDigits));
  LongWork work("drawing pairs of digits", static_cast<uint64_t>(rows));
  for_row_stretches(rows, kPairsAtATime, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      PhiloxSource random(seed, stream, static_cast<uint64_t>(row) * 2 * kBlocksOfDigit);
      const int left = digit_of_row(seed, stream, row), right = static_cast<int>(random.below(kDigits));
      const int inwards = static_cast<int>(random.below(kMostInwards + 1));
      const int outwards = static_cast<int>(random.below(kMostInwards + 1));
      std::byte* canvas = split.values.data() + row * kDigitSize * kPairWidth;
      put(write_digit(left, random), inwards, canvas);
      put(write_digit(right, random), kDigitSize - outwards, canvas);
      for (const int digit : {left, right}) labels[static_cast<std::size_t>(row * kDigits + digit)] = 1;
    }
    work.advance(static_cast<uint64_t>(last - first));
  });
  split.fields[kTargetField] = fields::label_values(labels, kDigits);
  return split;
}

DatasetSizes pair_sizes(const DataConfig& config) {
  const int64_t train = synthetic_rows(config.synthetic_train, kPairTrainRows, "synthetic_train");
  const int64_t test = synthetic_rows(config.synthetic_test, kPairTestRows, "synthetic_test");
  return {.train = {DType::u8, {train, 1, kDigitSize, kPairWidth}},
          .test = {DType::u8, {test, 1, kDigitSize, kPairWidth}},
          .target = fields::target_field("label_set", digit_names())};
}

Dataset make_two_digits(const DataConfig& config) {
  const DatasetSizes sizes = pair_sizes(config);
  Dataset set;
  set.name = "two_digits";
  set.source = "synthetic, seed " + std::to_string(config.seed);
  set.train = make_pairs(config.seed, kTwoDigitsTrainStream, sizes.train);
  set.test = make_pairs(config.seed, kTwoDigitsTestStream, sizes.test);
  set.fields.target() = sizes.target;
  set.fields.input().light_on_dark = true;
  return set;
}

}  // namespace

DatasetRow two_digits_row() {
  DatasetRow row;
  row.name = "two_digits";
  row.description =
      "drawn by the program: two digits on one image of 28x56, for task multi_label, 10000 train and 2000 "
      "test images, 10 labels";
  row.origin = Origin::synthetic;
  row.sizes = pair_sizes;
  row.make = make_two_digits;
  return row;
}

}  // namespace gpunn::data
