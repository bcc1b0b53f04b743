#include <gpunn/random.h>

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

TEST_CASE("zeros are zeros") {
  CHECK(initial_values(weight({3}, 1, InitKind::zeros), 1, 0) == std::vector<float>{0, 0, 0});
}
