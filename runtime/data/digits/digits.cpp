#include "data/digits/digits.hpp"

#include <gpunn/progress.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "common/parallel.hpp"
#include "data/digits/distort.hpp"
#include "data/rows/room.hpp"
#include "data/synthetic/synthetic.hpp"
#include "fields/kind.hpp"
#include "fields/values.hpp"

namespace gpunn::data {

namespace {

constexpr int64_t kDigitTrainRows = 20000;
constexpr int64_t kDigitTestRows = 4000;
constexpr int64_t kRowsAtATime = 256;

constexpr double kPixelsOfGlyph = 20;  // height of an undistorted digit, as MNIST's
constexpr double kMostShift = 2.5;     // from the middle, pixels
constexpr double kJitter = 4;          // of a curve's ends and handles, in glyph units
constexpr double kElasticStrength = 3.5;
constexpr double kNoise = 24;
constexpr int kPiecesOfCurve = 8;
constexpr int kPiecesOfLine = 4;  // more than one, so that it can bend

Point jittered(const Point& p, PhiloxSource& random) {
  const double x = p.x + random.uniform(-kJitter, kJitter);
  return {x, p.y + random.uniform(-kJitter, kJitter)};
}

Point on_curve(const Curve& c, double t) {
  const double u = 1 - t;
  const double w0 = u * u * u;
  const double w1 = 3 * u * u * t;
  const double w2 = 3 * u * t * t;
  const double w3 = t * t * t;
  return {w0 * c.from.x + w1 * c.handle1.x + w2 * c.handle2.x + w3 * c.to.x,
          w0 * c.from.y + w1 * c.handle1.y + w2 * c.handle2.y + w3 * c.to.y};
}

// The glyph's strokes as lines around the origin, in pixels, every end and handle a little astray. Curves that met in a
// point still do.
std::vector<Polyline> trace(const Glyph& glyph, PhiloxSource& random) {
  const auto to_pixels = [](const Point& p) {
    return Point{(p.x - 50) * kPixelsOfGlyph / 100, (p.y - 50) * kPixelsOfGlyph / 100};
  };
  std::vector<Polyline> lines;
  Point last_given, last_end;
  for (const Curve& given : glyph.curves) {
    const bool joined = !lines.empty() && given.from.x == last_given.x && given.from.y == last_given.y;
    Curve curve = given;
    curve.from = joined ? last_end : jittered(given.from, random);
    curve.to = jittered(given.to, random);
    curve.handle1 = jittered(given.handle1, random);
    curve.handle2 = jittered(given.handle2, random);
    last_given = given.to;
    last_end = curve.to;
    if (!joined) lines.push_back({to_pixels(curve.from)});
    const int pieces = given.straight ? kPiecesOfLine : kPiecesOfCurve;
    for (int i = 1; i <= pieces; ++i) lines.back().push_back(to_pixels(on_curve(curve, double(i) / pieces)));
  }
  return lines;
}

// Moves the lines' bounding box to the image's middle plus `shift`, as far as they stay `border` away from its edges.
// Lines that are too large for that are made smaller.
void place(std::vector<Polyline>& lines, const Point& shift, double border) {
  Point low = {std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  Point high = {-low.x, -low.y};
  for (const Polyline& line : lines) {
    for (const Point& p : line) {
      low = {std::min(low.x, p.x), std::min(low.y, p.y)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
  }
  const Point middle = {(low.x + high.x) / 2, (low.y + high.y) / 2};
  const double most = kDigitSize - 2 * border;
  const double extent = std::max(high.x - low.x, high.y - low.y);
  const double scale = extent > most ? most / extent : 1;
  const auto target = [&](double from, double to, double wanted) {
    const double room = std::max(0.0, (most - scale * (to - from)) / 2);
    return kDigitSize / 2.0 + std::clamp(wanted, -room, room);
  };
  const Point centre = {target(low.x, high.x, shift.x), target(low.y, high.y, shift.y)};
  for (Polyline& line : lines) {
    for (Point& p : line) p = {centre.x + scale * (p.x - middle.x), centre.y + scale * (p.y - middle.y)};
  }
}

Split make_split(uint64_t seed, uint64_t stream, const TensorType& samples) {
  Split split;
  split.samples = samples;
  const int64_t rows = split.rows();
  make_room(split);
  std::vector<int32_t> classes(static_cast<std::size_t>(rows));
  LongWork work("drawing digits", static_cast<uint64_t>(rows));
  for_row_stretches(rows, kRowsAtATime, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const int digit = digit_of_row(seed, stream, row);
      PhiloxSource random(seed, stream, static_cast<uint64_t>(row) * kBlocksOfDigit);
      const DigitImage image = write_digit(digit, random);
      std::memcpy(split.values.data() + static_cast<std::size_t>(row) * image.size(), image.data(), image.size());
      classes[static_cast<std::size_t>(row)] = digit;
    }
    work.advance(static_cast<uint64_t>(last - first));
  });
  split.fields[kLabelField] = fields::class_values(classes);
  return split;
}

// Of all pixels scaled to [0, 1].
std::pair<double, double> mean_and_deviation(const std::vector<std::byte>& pixels) {
  uint64_t sum = 0, squares = 0;
  for (const std::byte pixel : pixels) {
    const auto value = std::to_integer<uint64_t>(pixel);
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(pixels.size());
  const double mean = static_cast<double>(sum) / count;
  const double variance = std::max(0.0, static_cast<double>(squares) / count - mean * mean);
  return {mean / 255, std::sqrt(variance) / 255};
}

DatasetSizes digits_sizes(const DataConfig& config) {
  const int64_t train = synthetic_rows(config.synthetic_train, kDigitTrainRows, "synthetic_train");
  const int64_t test = synthetic_rows(config.synthetic_test, kDigitTestRows, "synthetic_test");
  return {.train = {DType::u8, {train, 1, kDigitSize, kDigitSize}},
          .test = {DType::u8, {test, 1, kDigitSize, kDigitSize}},
          .target = fields::target_field("class", digit_names())};
}

Dataset make_digits(const DataConfig& config) {
  const DatasetSizes sizes = digits_sizes(config);
  Dataset set;
  set.name = "digits";
  set.source = "synthetic, seed " + std::to_string(config.seed);
  set.train = make_split(config.seed, kDigitsTrainStream, sizes.train);
  set.test = make_split(config.seed, kDigitsTestStream, sizes.test);
  set.fields.target() = sizes.target;
  const auto [mean, deviation] = mean_and_deviation(set.train.values);
  set.fields.input().mean = {mean};
  set.fields.input().stddev = {deviation};
  set.fields.input().light_on_dark = true;
  return set;
}

}  // namespace

int digit_of_row(uint64_t seed, uint64_t stream, int64_t row) {
  return static_cast<int>(
      gpunn_random_permute(seed, stream & 0xFFFFFFFF, row / kDigits, kDigits, static_cast<uint32_t>(row % kDigits)));
}

std::vector<std::string> digit_names() { return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}; }

DigitImage write_digit(int digit, PhiloxSource& random) {
  const std::vector<Glyph>& ways = glyphs()[static_cast<std::size_t>(digit)];
  const Glyph& glyph = ways[random.below(static_cast<uint32_t>(ways.size()))];
  std::vector<Polyline> lines = trace(glyph, random);
  const Affine affine = random_affine(random);
  const ElasticField elastic(kElasticStrength, random);
  const double half_width = random.uniform(0.7, 1.8);
  const double peak = random.uniform(190, 255);
  const Point shift = {random.uniform(-kMostShift, kMostShift), random.uniform(-kMostShift, kMostShift)};
  const Point middle = {kDigitSize / 2.0, kDigitSize / 2.0};
  for (Polyline& line : lines) {
    for (Point& p : line) {
      const Point straight = affine(p);
      p = elastic({straight.x + middle.x, straight.y + middle.y});
    }
  }
  place(lines, shift, half_width + 1);
  DigitImage image = draw(lines, half_width, peak);
  add_noise(image, kNoise, random);
  return image;
}

DatasetRow digits_row() {
  DatasetRow row;
  row.name = "digits";
  row.description =
      "drawn by the program: digits of random strokes, 20000 train and 4000 test images of 28x28, 10 classes";
  row.origin = Origin::synthetic;
  row.sizes = digits_sizes;
  row.make = make_digits;
  return row;
}

}  // namespace gpunn::data
