#include "chart/axis.hpp"

#include <cmath>

#include "catch.hpp"

using namespace gpunn::chart;

namespace {

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> result;
  for (const Tick& tick : axis.ticks) result.push_back(tick.label);
  return result;
}

using Labels = std::vector<std::string>;

}  // namespace

TEST_CASE("a linear axis has round ticks and ends at them") {
  const Axis axis = make_axis(Scale::linear, 0.13, 2.31, 6);
  CHECK(labels(axis) == Labels{"0.0", "0.5", "1.0", "1.5", "2.0", "2.5"});
  CHECK(axis.share(axis.low) == 0);
  CHECK(axis.share(axis.high) == 1);
  CHECK(axis.share(1.25) == Approx(0.5));
  CHECK(labels(make_axis(Scale::linear, 1, 4680, 6)) == Labels{"0", "1000", "2000", "3000", "4000", "5000"});
  CHECK(labels(make_axis(Scale::linear, -0.002, 0.001, 6)) ==
        Labels{"-0.0020", "-0.0015", "-0.0010", "-0.0005", "0.0000", "0.0005", "0.0010"});
}

TEST_CASE("whole numbers only, where that is asked for") {
  CHECK(labels(make_axis(Scale::linear, 1, 3, 6, true)) == Labels{"1", "2", "3"});
  for (const Tick& tick : make_axis(Scale::linear, 1, 1, 6, true).ticks) CHECK(tick.value == std::round(tick.value));
}

TEST_CASE("equal and nearly equal values have an axis as well") {
  for (const double value : {0.0, 5.0, -3.0, 1e-30, 1e300}) {
    for (const double other : {value, std::nextafter(value, 1e301)}) {
      const Axis axis = make_axis(Scale::linear, value, other, 6);
      CHECK(axis.low < axis.high);
      CHECK(axis.ticks.size() >= 2);
      CHECK(axis.ticks.size() < 20);
    }
  }
  const Axis axis = make_axis(Scale::logarithmic, 3, 3, 6);
  CHECK(axis.low < 3);
  CHECK(axis.high > 3);
}

TEST_CASE("a logarithmic axis has ticks at 1, 2 and 5, or at decades") {
  const Axis few = make_axis(Scale::logarithmic, 0.013, 2.3, 6);
  CHECK(labels(few) == Labels{"0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5"});
  CHECK(few.share(0.01) == Approx(0).margin(1e-12));
  CHECK(few.share(5) == Approx(1));
  CHECK(few.share(std::sqrt(0.05)) == Approx(0.5));
  const Axis many = make_axis(Scale::logarithmic, 1e-7, 30, 6);
  CHECK(many.ticks.size() <= 10);
  CHECK(many.low <= 1e-7);
  CHECK(many.high >= 30);
}
