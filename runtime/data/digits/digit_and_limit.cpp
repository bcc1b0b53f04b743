// A digit, 28x28, and a row of two numbers: a limit and one that means nothing. The class says whether the digit is
// above the limit. A model needs both inputs: either by itself gives no more than three classes of four.
#include <gpunn/progress.hpp>

#include <string>
#include <vector>

#include "common/parallel.hpp"
#include "data/digits/digits.hpp"
#include "data/rows/room.hpp"
#include "data/synthetic/synthetic.hpp"
#include "fields/kind.hpp"
#include "fields/values.hpp"

namespace gpunn::data {

namespace {

constexpr const char* kRow = "row";
constexpr int64_t kLimitTrainRows = 10000;
constexpr int64_t kLimitTestRows = 2000;
constexpr int64_t kColumns = 2;
constexpr int64_t kLimitsAtATime = 256;
constexpr double kJitter = 0.4;   // limits are as far from the middle between two digits at most
constexpr double kGramsEach = 8;  // the row gives a limit in other units: 20 + 8 * limit
constexpr double kGramsOfZero = 20;

Split make_limits(uint64_t seed, uint64_t stream, const TensorType& samples) {
  Split split;
  split.samples = samples;
  make_room(split);
  const int64_t rows = split.rows();
  std::vector<double> numbers(static_cast<std::size_t>(rows * kColumns));
  std::vector<int32_t> classes(static_cast<std::size_t>(rows));
  LongWork work("drawing digits", static_cast<uint64_t>(rows));
  for_row_stretches(rows, kLimitsAtATime, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      PhiloxSource random(seed, stream, static_cast<uint64_t>(row) * kBlocksOfDigit);
      const int digit = digit_of_row(seed, stream, row);
      const int below = static_cast<int>(random.below(kDigits + 1));  // the digits that are not above the limit
      const double limit = below - 0.5 + random.uniform(-kJitter, kJitter);
      const auto at = static_cast<std::size_t>(row * kColumns);
      numbers[at] = kGramsOfZero + kGramsEach * limit;
      numbers[at + 1] = random.uniform(-1, 1);
      classes[static_cast<std::size_t>(row)] = digit > limit ? 1 : 0;
      const DigitImage image = write_digit(digit, random);
      std::byte* pixels = split.values.data() + row * kDigitSize * kDigitSize;
      for (std::size_t i = 0; i < image.size(); ++i) pixels[i] = std::byte{image[i]};
    }
    work.advance(static_cast<uint64_t>(last - first));
  });
  split.fields[kRow] = fields::number_values(numbers, kColumns);
  split.fields[kLabelField] = fields::class_values(classes);
  return split;
}

DatasetSizes limit_sizes(const DataConfig& config) {
  const int64_t train = synthetic_rows(config.synthetic_train, kLimitTrainRows, "synthetic_train");
  const int64_t test = synthetic_rows(config.synthetic_test, kLimitTestRows, "synthetic_test");
  return {.train = {DType::u8, {train, 1, kDigitSize, kDigitSize}},
          .test = {DType::u8, {test, 1, kDigitSize, kDigitSize}},
          .target = fields::target_field("class", {"at most the limit", "above the limit"}),
          .inputs = {{.name = kRow, .kind = "numbers", .type = {DType::f32, {kColumns}}, .names = {"limit", "noise"}}}};
}

Dataset make_digit_and_limit(const DataConfig& config) {
  const DatasetSizes sizes = limit_sizes(config);
  Dataset set;
  set.name = "digit_and_limit";
  set.source = "synthetic, seed " + std::to_string(config.seed);
  set.train = make_limits(config.seed, kLimitTrainStream, sizes.train);
  set.test = make_limits(config.seed, kLimitTestStream, sizes.test);
  set.fields.target() = sizes.target;
  set.fields.input().light_on_dark = true;
  for (const Field& input : sizes.inputs) set.fields.fields.push_back(input);
  return set;
}

}  // namespace

DatasetRow digit_and_limit_row() {
  DatasetRow row;
  row.name = "digit_and_limit";
  row.description =
      "drawn by the program: a digit on an image of 28x28 and a row with a limit, for models with two inputs, 10000 "
      "train and 2000 test samples, 2 classes";
  row.origin = Origin::synthetic;
  row.sizes = limit_sizes;
  row.make = make_digit_and_limit;
  return row;
}

}  // namespace gpunn::data
