// Means and deviations of columns far from 0, and the way of the user's numbers to the device.
#include <gpunn/data.hpp>

#include <cmath>
#include <random>
#include <span>

#include "catch.hpp"
#include "data/statistics.hpp"
#include "fields/standardise.hpp"

using namespace gpunn;
using fields::Moments;
using fields::Standardiser;

namespace {

template <class T>
std::vector<std::byte> bytes_of_numbers(const std::vector<T>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

// Whole numbers with a deviation of about 4000, which an offset leaves exact.
std::vector<double> whole_numbers(double offset, double step) {
  std::mt19937 random(1);
  std::vector<double> numbers;
  for (int i = 0; i < 600; ++i) numbers.push_back(offset + step * static_cast<double>(random() % 14000));
  return numbers;
}

std::vector<std::byte> standardised(const std::vector<double>& numbers) {
  const TensorType type{DType::f64, {std::ssize(numbers) / 2, 2}};
  std::vector<double> mean, stddev;
  for (const Moments& one : fields::moments_of(type, bytes_of_numbers(numbers))) {
    mean.push_back(one.centre());
    stddev.push_back(one.unit());
  }
  return Standardiser(type, mean, stddev).converted(bytes_of_numbers(numbers));
}

}  // namespace

TEST_CASE("an offset that the numbers take on exactly changes no bit of what the device gets") {
  // Seconds, milliseconds and nanoseconds since 1970; the last are whole seconds, which f64 has exactly.
  const auto [offset, step] = GENERATE(table<double, double>({{1.7e9, 1}, {-1.7e9, 1}, {1.7e12, 1}, {1.7e18, 1e9}}));
  const std::vector<std::byte> near = standardised(whole_numbers(0, step));
  CHECK((standardised(whole_numbers(offset, step)) == near));  // without the bytes in the report
}

TEST_CASE("means and deviations are those of the definition, whatever the offset") {
  const double offset = GENERATE(0.0, 1e9, 1.7e12);
  // 0, 1, 2, ..., 9: mean 4.5, deviation sqrt(8.25)
  std::vector<double> numbers;
  for (int i = 0; i < 10; ++i) numbers.push_back(offset + i);
  const Moments moments = fields::moments_of({DType::f64, {10, 1}}, bytes_of_numbers(numbers)).front();
  CHECK(moments.low == offset);
  CHECK(moments.high == offset + 9);
  CHECK(moments.mean() == offset + 4.5);
  CHECK(moments.centre() == offset + 4.5);
  CHECK(std::abs(moments.stddev - std::sqrt(8.25)) < 1e-12);
}

TEST_CASE("a column that differs by rounding alone is constant") {
  const Moments noise =
      fields::moments_of({DType::f64, {3, 1}}, bytes_of_numbers<double>({0.3, 0.1 + 0.2, 0.3})).front();
  CHECK(noise.stddev > 0);
  CHECK(noise.unit() == 1);
  const Moments same = fields::moments_of({DType::f64, {2, 1}}, bytes_of_numbers<double>({7, 7})).front();
  CHECK(same.unit() == 1);
  CHECK(same.centre() == 7);
  const Moments small = fields::moments_of({DType::f64, {2, 1}}, bytes_of_numbers<double>({1e-30, 3e-30})).front();
  CHECK(small.unit() == small.stddev);
}

TEST_CASE("channels of images are standardised by channel, from any number on") {
  const TensorType type{DType::f32, {2, 2, 2}};  // 2 rows of 2 channels of 2 numbers
  const std::vector<std::byte> images = bytes_of_numbers<float>({1, 2, 30, 40, 3, 4, 50, 60});
  const std::vector<double> mean = {2, 40}, stddev = {2, 20};
  const Standardiser standardiser(type, mean, stddev);
  const std::vector<float> expected = {-0.5F, 0, -0.5F, 0, 0.5F, 1, 0.5F, 1};
  CHECK(standardiser.converted(images) == bytes_of_numbers(expected));
  std::vector<std::byte> rest(3 * sizeof(float));
  standardiser.convert(images.data() + 3 * sizeof(float), 3, 3, rest.data());
  CHECK(rest == bytes_of_numbers<float>({0, 0.5F, 1}));
  CHECK(standardiser.restored(expected) == images);
}

TEST_CASE("bytes, labels and numbers that are normalised already pass unchanged") {
  CHECK(Standardiser({DType::u8, {4, 1}}, std::vector<double>{0.5}, std::vector<double>{0.25}).copies());
  CHECK(Standardiser({DType::i32, {4}}, {}, {}).copies());
  CHECK(Standardiser({DType::f32, {4, 2}}, {}, {}).copies());
  CHECK(Standardiser({DType::f32, {4, 1}}, std::vector<double>{0}, std::vector<double>{1}).copies());
  const Standardiser rounds({DType::f64, {4, 1}}, {}, {});
  CHECK(rounds.converted(bytes_of_numbers<double>({0.1, 2})) == bytes_of_numbers<float>({0.1F, 2}));
}

TEST_CASE("a column whose steps are a large share of its deviation has a warning") {
  Dataset set;
  set.source = "times.csv";
  set.fields.input().names = {"time", "size"};
  std::vector<float> numbers;
  for (int i = 0; i < 100; ++i) {
    numbers.push_back(static_cast<float>(1.7e9 + 60.0 * i));  // whose steps are 128
    numbers.push_back(static_cast<float>(i));
  }
  set.train.samples = {DType::f32, {100, 2}};
  set.train.values = bytes_of_numbers(numbers);
  data::normalise_by_training_samples(set);
  REQUIRE(set.notes.size() == 1);
  CHECK_THAT(set.notes.front(), Contains("WARNING: times.csv: column 'time' holds numbers rounded to f32"));
  CHECK_THAT(set.notes.front(), Contains("128 apart"));
  set.notes.clear();
  set.train.samples.dtype = DType::f64;
  set.train.values = bytes_of_numbers(std::vector<double>(numbers.begin(), numbers.end()));
  data::normalise_by_training_samples(set);
  CHECK(set.notes.empty());
  set.train.rounded_to = DType::f16;  // whose steps are 2^20 there
  data::normalise_by_training_samples(set);
  REQUIRE(set.notes.size() == 1);
  CHECK_THAT(set.notes.front(), Contains("rounded to f16"));
  CHECK(!data::is_coarse(255, 73.6, DType::f32));  // bytes
  CHECK(data::step_at(1.7e9, DType::f32) == 128);
  CHECK(data::step_at(1, DType::f16) == std::ldexp(1.0, -10));
}
