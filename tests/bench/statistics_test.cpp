#include "bench/statistics.hpp"

#include <gpunn/error.hpp>

#include "catch.hpp"

using gpunn::BenchOptions;
using gpunn::BenchReport;
namespace bench = gpunn::bench;

TEST_CASE("the median is the middle number, or the mean of the middle two") {
  CHECK(bench::median_of_sorted({3}) == 3);
  CHECK(bench::median_of_sorted({1, 4}) == 2.5);
  CHECK(bench::median_of_sorted({1, 2, 9}) == 2);
  CHECK(bench::median_of_sorted({1, 2, 4, 100}) == 3);
}

TEST_CASE("a measurement runs its samples after those that warm up, and gives the time of one run") {
  int samples = 0;
  BenchOptions options;
  options.warmup = 2;
  options.repeats = 5;
  const BenchReport report = bench::measure([&] { ++samples; }, options, 4);
  CHECK(samples == 7);
  CHECK(report.repeats == 5);
  CHECK(report.min_seconds >= 0);
  CHECK(report.min_seconds <= report.median_seconds);
  CHECK(report.median_seconds <= report.max_seconds);
  options.repeats = 0;
  CHECK_THROWS_AS(bench::measure([] {}, options, 1), gpunn::Error);
}
