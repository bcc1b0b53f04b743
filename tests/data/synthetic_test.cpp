#include "data/synthetic/synthetic.hpp"

#include <gpunn/data.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

#include <zlib.h>

#include "catch.hpp"
#include "data/digits/distort.hpp"
#include "data/digits/glyphs.hpp"
#include "files.hpp"

using gpunn::DataConfig;
using gpunn::Dataset;
using gpunn::load_dataset;
using gpunn::Split;

namespace {

Dataset make(const std::string& name, uint64_t seed, int64_t train = 0, int64_t test = 0) {
  DataConfig config;
  config.dataset = name;
  config.seed = seed;
  config.synthetic_train = train;
  config.synthetic_test = test;
  return load_dataset(config);
}

uLong crc_of(const Split& split) {
  return crc32(0, reinterpret_cast<const Bytef*>(split.values.data()), static_cast<uInt>(split.values.size()));
}

// Trains a linear softmax classifier by plain SGD and returns its share of right answers on `test`.
double linear_accuracy(const Dataset& set, int epochs) {
  constexpr std::size_t kPixels = 784, kClasses = 10;
  std::vector<float> weights(kClasses * (kPixels + 1));
  std::vector<float> x(kPixels + 1, 1.0F), scores(kClasses);
  const auto predict = [&](const Split& split, std::size_t row) {
    for (std::size_t i = 0; i < kPixels; ++i) {
      x[i] = static_cast<float>(std::to_integer<int>(split.values[row * kPixels + i])) / 255.0F;
    }
    for (std::size_t c = 0; c < kClasses; ++c) {
      scores[c] =
          std::inner_product(x.begin(), x.end(), weights.begin() + static_cast<std::ptrdiff_t>(c * x.size()), 0.0F);
    }
    return static_cast<int>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  };
  const std::vector<int32_t> labels = labels_of(set.train), of_test = labels_of(set.test);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (std::size_t row = 0; row < labels.size(); ++row) {
      const float most = scores[static_cast<std::size_t>(predict(set.train, row))];
      float total = 0;
      for (float& score : scores) total += score = std::exp(score - most);
      for (std::size_t c = 0; c < kClasses; ++c) {
        const float wanted = static_cast<int>(c) == labels[row] ? 1.0F : 0.0F;
        const float step = 0.01F * (wanted - scores[c] / total);
        for (std::size_t i = 0; i < x.size(); ++i) weights[c * x.size() + i] += step * x[i];
      }
    }
  }
  std::size_t right = 0;
  for (std::size_t row = 0; row < of_test.size(); ++row) right += predict(set.test, row) == of_test[row] ? 1 : 0;
  return static_cast<double>(right) / static_cast<double>(of_test.size());
}

}  // namespace

TEST_CASE("digits: sizes, classes and statistics") {
  const Dataset set = make("digits", 1);
  CHECK(set.name == "digits");
  CHECK(set.source == "synthetic, seed 1");
  CHECK(set.train.samples == gpunn::TensorType{gpunn::DType::u8, {20000, 1, 28, 28}});
  CHECK(set.test.samples == gpunn::TensorType{gpunn::DType::u8, {4000, 1, 28, 28}});
  CHECK(set.fields.target().count() == 10);
  CHECK(set.fields.target().names.size() == 10);
  std::vector<int> counts(10);
  const std::vector<int32_t> labels = labels_of(set.train);
  for (const int32_t label : labels) ++counts.at(static_cast<std::size_t>(label));
  CHECK(counts == std::vector<int>(10, 2000));
  // Any ten in line hold each class once, in an order that changes.
  bool order_changes = false;
  for (std::size_t block = 0; block < 100; ++block) {
    int seen = 0;
    for (std::size_t i = 0; i < 10; ++i) seen |= 1 << labels[10 * block + i];
    REQUIRE(seen == 1023);
    order_changes = order_changes || labels[10 * block] != labels[0];
  }
  CHECK(order_changes);

  double sum = 0, squares = 0;
  for (const std::byte pixel : set.train.values) {
    const double value = std::to_integer<int>(pixel) / 255.0;
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(set.train.values.size());
  CHECK(std::abs(set.fields.input().mean.at(0) - sum / count) < 1e-9);
  CHECK(std::abs(set.fields.input().stddev.at(0) - std::sqrt(squares / count - sum / count * sum / count)) < 1e-9);
}

TEST_CASE("digits: every image has ink, all of it inside") {
  const Dataset set = make("digits", 3, 3000, 10);
  for (std::size_t row = 0; row < 3000; ++row) {
    int ink = 0, border = 0;
    for (std::size_t i = 0; i < 784; ++i) {
      const bool light = std::to_integer<int>(set.train.values[row * 784 + i]) > 100;
      const std::size_t y = i / 28, x = i % 28;
      ink += light ? 1 : 0;
      border += light && (y == 0 || y == 27 || x == 0 || x == 27) ? 1 : 0;
    }
    REQUIRE(ink > 12);
    REQUIRE(ink < 350);
    REQUIRE(border == 0);
  }
}

TEST_CASE("digits: the seed decides every bit, the size and the threads none") {
  const Dataset large = make("digits", 1, 3000, 100);
  const Dataset small = make("digits", 1, 100, 100);
  CHECK(std::memcmp(large.train.values.data(), small.train.values.data(), small.train.values.size()) == 0);
  const std::vector<int32_t> large_labels = labels_of(large.train);
  CHECK(std::ranges::equal(labels_of(small.train), std::span(large_labels).first(labels_of(small.train).size())));
  CHECK(crc_of(large.test) == crc_of(small.test));
  CHECK(crc_of(small.test) != crc_of(small.train));
  CHECK(crc_of(make("digits", 2, 100, 100).train) != crc_of(small.train));
  // The same bits on every machine: these.
  CHECK(crc_of(large.train) == 0x8aa2ca7e);
}

TEST_CASE("digits: a linear classifier learns something, and not all") {
  const double accuracy = linear_accuracy(make("digits", 1, 8000, 1000), 3);
  CHECK(accuracy > 0.75);
  CHECK(accuracy < 0.95);
}

TEST_CASE("glyph paths are checked") {
  using gpunn::data::parse_path;
  CHECK(parse_path("M 0 0 L 10 20 C 1 2 3 4 5 6").size() == 2);
  CHECK(parse_path("M 0 0 L 10 20")[0].straight);
  CHECK_THROWS_WITH(parse_path("M 0 0 Q 1 1"), Contains("expected M, L or C"));
  CHECK_THROWS_WITH(parse_path("M 0"), Contains("expected a whole number"));
  for (const auto& ways : gpunn::data::glyphs()) CHECK(ways.size() >= 2);
}

TEST_CASE("the elastic field is smooth and bounded, the affine map turns by at most 15 degrees") {
  gpunn::data::PhiloxSource random(7, 8, 0);
  for (int round = 0; round < 50; ++round) {
    const gpunn::data::ElasticField field(3, random);
    for (double x = -2; x < 30; x += 0.5) {
      const gpunn::data::Point a = field({x, 11});
      const gpunn::data::Point b = field({x + 0.01, 11});
      REQUIRE(std::abs(a.x - x) <= 3);
      REQUIRE(std::abs(a.y - 11) <= 3);
      REQUIRE(std::abs(b.x - a.x) < 0.05);
      REQUIRE(std::abs(b.y - a.y) < 0.05);
    }
    const gpunn::data::Affine affine = gpunn::data::random_affine(random);
    // The first column is the turned and scaled x axis.
    REQUIRE(std::abs(std::atan2(affine.c, affine.a)) < 15.001 * std::acos(-1.0) / 180);
    REQUIRE(affine.a * affine.d - affine.b * affine.c > 0.4);
  }
}

TEST_CASE("points: two classes that a perceptron separates, with a margin") {
  const uint64_t seed = GENERATE(1, 2, 3, 99);
  const Dataset set = make("points", seed);
  CHECK(set.train.samples == gpunn::TensorType{gpunn::DType::f32, {1000, 2}});
  CHECK(set.test.samples == gpunn::TensorType{gpunn::DType::f32, {200, 2}});
  CHECK(set.fields.target().count() == 2);
  CHECK(set.fields.input().mean == std::vector<double>{0, 0});
  CHECK(set.fields.input().stddev == std::vector<double>{1, 1});
  const std::vector<int32_t> all = labels_of(set.train);
  const auto ones = std::accumulate(all.begin(), all.end(), 0);
  CHECK(ones > 400);
  CHECK(ones < 600);

  std::vector<float> points(2400);
  std::memcpy(points.data(), set.train.values.data(), set.train.values.size());
  std::memcpy(points.data() + 2000, set.test.values.data(), set.test.values.size());
  std::vector<int32_t> labels = labels_of(set.train);
  const std::vector<int32_t> of_test = labels_of(set.test);
  labels.insert(labels.end(), of_test.begin(), of_test.end());
  double w[3] = {0, 0, 0};
  int mistakes = 1, epochs = 0;
  // Novikoff's bound with a margin of 0.1 and points within sqrt(3) of the origin: at most 300 * |w|^2 corrections.
  for (; mistakes > 0 && epochs < 400; ++epochs) {
    mistakes = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const double x = points[2 * i], y = points[2 * i + 1];
      REQUIRE(std::max(std::abs(x), std::abs(y)) <= 1);
      const int sign = labels[i] == 1 ? 1 : -1;
      if (sign * (w[0] * x + w[1] * y + w[2]) > 0) continue;
      w[0] += sign * x;
      w[1] += sign * y;
      w[2] += sign;
      ++mistakes;
    }
  }
  CHECK(mistakes == 0);
}

TEST_CASE("points: the seed decides") {
  CHECK(crc_of(make("points", 5).train) == crc_of(make("points", 5).train));
  CHECK(crc_of(make("points", 5).train) != crc_of(make("points", 6).train));
  CHECK(make("points", 5, 17, 3).train.rows() == 17);
}

TEST_CASE("sizes of synthetic sets are bounded") {
  CHECK_THROWS_WITH(make("points", 1, -5), Contains("data.synthetic_train is -5"));
  CHECK_THROWS_WITH(make("digits", 1, 0, int64_t{1} << 40), Contains("data.synthetic_test"));
}
