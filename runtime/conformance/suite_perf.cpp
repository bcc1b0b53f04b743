#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "conformance/bound_op.hpp"
#include "conformance/case_runner.hpp"
#include "conformance/suites.hpp"
#include "ops/case.hpp"
#include "ops/op.hpp"

namespace gpunn::conformance {

using ops::Case;
using ops::Random;
using ops::typical_cases;

namespace {

using execution::Backend;

constexpr int kSamples = 15;
constexpr double kSampleMilliseconds = 2;  // well above the grain of any clock
constexpr double kMostRuns = 2000;

// Times on the device's own clock, of many runs between two events; as a captured graph where that can be, so that
// small kernels are not measured by how fast the host enqueues them.
double median_seconds(Backend& backend, BoundOp& bound, bool capturable) {
  const auto timer = backend.make_timer();
  const auto measure = [&](const auto& run) {
    timer->start();
    run();
    timer->stop();
    return timer->milliseconds();
  };
  bound.enqueue();
  backend.synchronize();
  const double once = std::max(measure([&] { bound.enqueue(); }), 1e-4);
  const auto runs = static_cast<int>(std::clamp(std::ceil(kSampleMilliseconds / once), 1.0, kMostRuns));
  const auto enqueue_all = [&] {
    for (int i = 0; i < runs; ++i) bound.enqueue();
  };
  std::unique_ptr<Backend::Captured> graph;
  if (capturable) graph = capture(backend, enqueue_all);
  std::vector<double> seconds;
  for (int i = 0; i <= kSamples; ++i) {
    const double milliseconds = graph != nullptr ? measure([&] { graph->launch(); }) : measure(enqueue_all);
    if (i > 0) seconds.push_back(milliseconds * 1e-3 / runs);  // the first launch warms up
  }
  std::ranges::nth_element(seconds, seconds.begin() + kSamples / 2);
  return seconds[kSamples / 2];
}

void run_perf_case(const Case& test, Workbench& bench, CheckCase& result) {
  Backend& backend = bench.backend();
  if (!is_served(backend, test.signature, result)) return;
  Random random(bench.options().seed, test.name);
  BoundOp bound(backend, test.signature);
  bound.write(test.inputs(random));
  CheckCase unused;
  result.seconds = median_seconds(backend, bound, is_capturable(backend, bound.placement(), unused));
  result.gflops = ops::flops_of(test.signature) / result.seconds * 1e-9;
  result.gigabytes = ops::bytes_of(test.signature) / result.seconds * 1e-9;
  char text[96];
  std::snprintf(text, sizeof(text), "%.2f us, %.1f GFLOP/s, %.1f GB/s", result.seconds * 1e6, result.gflops,
                result.gigabytes);
  result.detail = text;
}

}  // namespace

Checks perf_suite(const CheckOptions& options) {
  Checks checks;
  for (Case& test : typical_cases(ops_of(options))) {
    checks.push_back(make_check("perf", test.signature, test.name));
    checks.back().run = [test = std::move(test)](Workbench& bench, CheckCase& result, const Note&) {
      run_perf_case(test, bench, result);
    };
  }
  return checks;
}

}  // namespace gpunn::conformance
