#include "conformance/training/curves.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>

#include "ops/comparison.hpp"
#include "ops/tolerance.hpp"
#include "session/session.hpp"

namespace gpunn::conformance {

using ops::compare;
using ops::product_roundoff;

namespace {

constexpr double kGoodAccuracy = 0.9;
constexpr double kAccuracyDifference = 0.03;  // 15 of 512 test images
constexpr double kFall = 0.3;                 // the last losses, as a share of the first

struct Curve {
  std::vector<float> losses;
  double accuracy = 0;
};

Curve train_whole(const Experiment& experiment) {
  training::Session session = training::Session::open(experiment);
  const int64_t steps = session.total_steps();
  session.train_steps(steps);
  session.backend().synchronize();
  Curve curve;
  curve.losses = session.losses(0, steps);
  curve.accuracy = session.evaluate().scores.value("accuracy");
  return curve;
}

// Nothing where the backend lacks what the training needs; then the verdict says so.
std::optional<Curve> try_train(const Experiment& experiment, CheckCase& result) {
  try {
    return train_whole(experiment);
  } catch (const Error& error) {
    if (error.code() != ExitCode::missing) throw;
    result.verdict = Verdict::unsupported;
    result.detail = error.what();
    return std::nullopt;
  }
}

double mean(const std::vector<float>& losses, std::size_t first, std::size_t count) {
  return std::accumulate(losses.begin() + static_cast<std::ptrdiff_t>(first),
                         losses.begin() + static_cast<std::ptrdiff_t>(first + count), 0.0) /
         static_cast<double>(count);
}

template <class... Values>
std::string curve_text(const char* format, Values... values) {
  char buffer[256];
  std::snprintf(buffer, sizeof(buffer), format, values...);
  return buffer;
}

// The largest difference in units of what is allowed, and in words where it is.
struct WorstPoint {
  double error = 0;
  std::string where;
  void add(double found, double expected, double allowed, const std::string& what) {
    const double difference = std::isfinite(found) ? std::abs(found - expected) : HUGE_VAL;
    if (difference / allowed < error) return;
    error = difference / allowed;
    where = what + curve_text(" is %.7g, on the reference %.7g: off by %.2g, allowed is %.2g", found, expected,
                              difference, allowed);
  }
};

WorstPoint compare(const std::vector<float>& found, const std::vector<float>& expected,
                   const CurveTolerance& tolerance) {
  WorstPoint worst;
  const auto early = static_cast<std::size_t>(tolerance.early_steps);
  for (std::size_t i = 0; i < std::min(early, expected.size()); ++i) {
    worst.add(found[i], expected[i], tolerance.early * std::abs(expected[i]), "the loss of step " + std::to_string(i));
  }
  for (std::size_t i = early; i < expected.size() && tolerance.each > 0; ++i) {
    worst.add(found[i], expected[i], tolerance.each * std::abs(expected[i]), "the loss of step " + std::to_string(i));
  }
  const auto stretch = static_cast<std::size_t>(tolerance.stretch);
  for (std::size_t first = 0; first + stretch <= expected.size(); first += stretch) {
    const double reference = mean(expected, first, stretch);
    worst.add(mean(found, first, stretch), reference, tolerance.late * std::max(reference, tolerance.floor),
              "the mean loss of steps " + std::to_string(first) + " to " + std::to_string(first + stretch - 1));
  }
  return worst;
}

// What is wrong with a curve by itself; empty: nothing.
std::string fault_of(const Curve& curve) {
  constexpr std::size_t kEnds = 10;
  const double first = mean(curve.losses, 0, kEnds);
  const double last = mean(curve.losses, curve.losses.size() - kEnds, kEnds);
  if (!(last < kFall * first)) {
    return curve_text(
        "the loss does not fall as it should: its mean is %.4g over the first %zu steps and %.4g over the last", first,
        kEnds, last);
  }
  if (curve.accuracy < kGoodAccuracy) {
    return curve_text("the accuracy is %.1f %% after the training; at least %.0f %% were expected",
                      100 * curve.accuracy, 100 * kGoodAccuracy);
  }
  return "";
}

}  // namespace

CurveTolerance curve_tolerance(const SampleTraining& sample, Precision precision) {
  return {.early_steps = 20,
          .early = std::max(1e-4, 16 * product_roundoff(precision)),
          .each = sample.smooth && precision == Precision::fp32 ? 1e-3 : 0,
          .stretch = 20,
          .late = 0.2,
          .floor = 0.1};
}

void run_curve(const SampleTraining& sample, Workbench& bench, CheckCase& result) {
  const CheckOptions& options = bench.options();
  Experiment experiment = experiment_of(sample, options, options.backend);
  experiment.precision = options.precision;
  const std::optional<Curve> found = try_train(experiment, result);
  if (!found) return;
  const std::optional<Curve> expected = try_train(experiment_of(sample, options, options.reference), result);
  if (!expected) {
    result.detail = "there is nothing to compare with: " + result.detail;
    return;
  }
  const std::string fault = fault_of(*found);
  const std::string reference_fault = fault_of(*expected);
  if (!reference_fault.empty()) throw Error("the reference '" + options.reference + "' fails: " + reference_fault);

  WorstPoint worst = compare(found->losses, expected->losses, curve_tolerance(sample, options.precision));
  worst.add(found->accuracy, expected->accuracy, kAccuracyDifference, "the accuracy");
  result.error = worst.error;
  if (worst.error > 1) {
    throw Error("against '" + options.reference + "' from the same seed " + worst.where +
                (fault.empty() ? "" : "; " + fault));
  }
  if (!fault.empty()) throw Error(fault);
  result.detail =
      curve_text("%zu steps, loss %.3g to %.3g, accuracy %.1f %%; nearest to its bound: ", found->losses.size(),
                 static_cast<double>(found->losses.front()), mean(found->losses, found->losses.size() - 10, 10),
                 100 * found->accuracy) +
      worst.where;
}

}  // namespace gpunn::conformance
