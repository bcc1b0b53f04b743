#include <gpunn/random.h>

#include <algorithm>
#include <cmath>

#include "catch.hpp"
#include "nn/model.hpp"

using namespace gpunn;
using nn::initial_values;
using nn::InitKind;

namespace {
nn::Parameter weight(Shape shape, int64_t fan_in, InitKind init = InitKind::kaiming_uniform) {
  return {.name = "w", .shape = std::move(shape), .init = init, .fan_in = fan_in, .decayed = true};
}
}  // namespace

TEST_CASE("values are uniform within one over the root of the fan-in") {
  const auto values = initial_values(weight({300, 400}, 400), 1, 0);
  REQUIRE(values.size() == 120000);
  double sum = 0, squares = 0;
  float low = 0, high = 0;
  for (const float value : values) {
    sum += value;
    squares += double{value} * value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const double n = 120000, bound = 0.05;
  CHECK(low >= -bound);
  CHECK(high <= bound);
  CHECK(low < -0.999 * bound);
  CHECK(high > 0.999 * bound);
  // Four standard errors.
  CHECK(std::abs(sum / n) < 4 * bound / std::sqrt(3 * n));
  CHECK(std::abs(squares / n / (bound * bound / 3) - 1) < 0.012);
}

TEST_CASE("values are words of the stated stream, rounded once") {
  const auto values = initial_values(weight({5}, 7, InitKind::bias_uniform), 42, 3);
  for (std::size_t i = 0; i < 5; ++i) {
    const uint32_t word = gpunn_philox(42, (uint64_t{1} << 33) + 3, i / 4).word[i % 4];
    const double unit = std::ldexp(static_cast<double>(word >> 8), -24);
    CHECK(values[i] == static_cast<float>((unit + unit - 1) * (1 / std::sqrt(7.0))));
  }
}

TEST_CASE("seed and place decide, nothing else") {
  const auto one = initial_values(weight({4, 4}, 4), 1, 0);
  CHECK(one == initial_values(weight({4, 4}, 4), 1, 0));
  CHECK(one == initial_values(weight({16}, 4), 1, 0));
  CHECK(one != initial_values(weight({4, 4}, 4), 2, 0));
  CHECK(one != initial_values(weight({4, 4}, 4), 1, 1));
}

TEST_CASE("zeros are zeros, ones ones") {
  CHECK(initial_values(weight({3}, 1, InitKind::zeros), 1, 0) == std::vector<float>{0, 0, 0});
  CHECK(initial_values(weight({3}, 1, InitKind::ones), 1, 0) == std::vector<float>{1, 1, 1});
}

TEST_CASE("normal and uniform values have the deviation asked for") {
  const bool normal = GENERATE(true, false);
  nn::Parameter parameter = weight({300, 401}, 0, normal ? InitKind::normal : InitKind::uniform);
  parameter.deviation = 0.02;
  const auto values = initial_values(parameter, 3, 5);
  REQUIRE(values.size() == 120300);
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0, fourth = 0, far = 0;
  for (const float value : values) {
    const double z = value / 0.02;
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
    far += std::abs(z) > 2 ? 1 : 0;
  }
  // Four standard errors of a mean, of a variance and of a share; a kurtosis of 3 or of 9/5.
  CHECK(std::abs(sum / n) < 4 / std::sqrt(n));
  CHECK(std::abs(squares / n - 1) < 4 * std::sqrt(2 / n));
  CHECK(std::abs(fourth / n - (normal ? 3.0 : 1.8)) < 0.12);
  CHECK(std::abs(far / n - (normal ? 0.0455 : 0.0)) < 0.0025);
  if (!normal) CHECK(*std::max_element(values.begin(), values.end()) <= 0.02 * std::sqrt(3.0));
  CHECK(values == initial_values(parameter, 3, 5));
}

TEST_CASE("neighbouring normal values, of one pair of random numbers too, have nothing to do with each other") {
  nn::Parameter parameter = weight({100000}, 0, InitKind::normal);
  parameter.deviation = 1;
  const auto values = initial_values(parameter, 1, 0);
  for (const std::size_t distance : {1, 2, 4}) {
    double product = 0;
    for (std::size_t i = distance; i < values.size(); ++i) product += double{values[i]} * values[i - distance];
    CHECK(std::abs(product) < 4 * std::sqrt(100000.0));
  }
}
