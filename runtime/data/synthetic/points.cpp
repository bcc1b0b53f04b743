// Two classes of points in the square [-1, 1)^2 on either side of a random line, none nearer to it than a margin:
// what a perceptron must separate without an error. Samples f32 [rows, 2].
#include <gpunn/progress.hpp>

#include <cmath>
#include <cstring>
#include <string>

#include "data/registry.hpp"
#include "data/rows/room.hpp"
#include "data/synthetic/philox_source.hpp"
#include "data/synthetic/synthetic.hpp"
#include "fields/kind.hpp"
#include "fields/values.hpp"

namespace gpunn::data {

namespace {

constexpr int64_t kPointTrainRows = 1000;
constexpr int64_t kPointTestRows = 200;
constexpr double kMargin = 0.1;
constexpr double kMostOffset = 0.3;                     // so that either side has room
constexpr uint64_t kBlocksOfPoint = uint64_t{1} << 20;  // no row ever draws so many

struct Line {
  double nx, ny, offset;  // of unit normal
  double side(double x, double y) const { return nx * x + ny * y - offset; }
};

Line random_line(uint64_t seed) {
  PhiloxSource random(seed, kPointsLineStream, 0);
  // A direction is the direction of a point that fell into the unit disc, not too near its centre.
  for (;;) {
    const double x = random.uniform(-1, 1);
    const double y = random.uniform(-1, 1);
    const double length = std::sqrt(x * x + y * y);
    if (length > 1 || length < 0.1) continue;
    return {x / length, y / length, random.uniform(-kMostOffset, kMostOffset)};
  }
}

Split make_split(const Line& line, uint64_t seed, uint64_t stream, const TensorType& samples) {
  Split split;
  split.samples = samples;
  const int64_t rows = split.rows();
  make_room(split);
  std::vector<int32_t> classes(static_cast<std::size_t>(rows));
  LongWork work("drawing points", static_cast<uint64_t>(rows));
  for (int64_t row = 0; row < rows; ++row, work.advance()) {
    PhiloxSource random(seed, stream, static_cast<uint64_t>(row) * kBlocksOfPoint);
    const int32_t label = static_cast<int32_t>(random.below(2));
    float point[2];
    double side = 0;
    do {
      for (float& coordinate : point) coordinate = static_cast<float>(random.uniform(-1, 1));
      side = line.side(point[0], point[1]) * (label == 1 ? 1 : -1);
    } while (side < kMargin);
    std::memcpy(split.values.data() + row * static_cast<int64_t>(sizeof(point)), point, sizeof(point));
    classes[static_cast<std::size_t>(row)] = label;
  }
  split.fields[kLabelField] = fields::class_values(classes);
  return split;
}

DatasetSizes points_sizes(const DataConfig& config) {
  const int64_t train = synthetic_rows(config.synthetic_train, kPointTrainRows, "synthetic_train");
  const int64_t test = synthetic_rows(config.synthetic_test, kPointTestRows, "synthetic_test");
  return {.train = {DType::f32, {train, 2}},
          .test = {DType::f32, {test, 2}},
          .target = fields::target_field("class", {"below", "above"})};
}

Dataset make_points(const DataConfig& config) {
  const DatasetSizes sizes = points_sizes(config);
  const Line line = random_line(config.seed);
  Dataset set;
  set.name = "points";
  set.source = "synthetic, seed " + std::to_string(config.seed);
  set.train = make_split(line, config.seed, kPointsTrainStream, sizes.train);
  set.test = make_split(line, config.seed, kPointsTestStream, sizes.test);
  set.fields.target() = sizes.target;
  set.fields.input().mean = {0, 0};
  set.fields.input().stddev = {1, 1};
  return set;
}

}  // namespace

DatasetRow points_row() {
  DatasetRow row;
  row.name = "points";
  row.description = "drawn: points of the plane on either side of a line, 1000 train and 200 test, 2 classes";
  row.origin = Origin::synthetic;
  row.sizes = points_sizes;
  row.make = make_points;
  return row;
}

}  // namespace gpunn::data
