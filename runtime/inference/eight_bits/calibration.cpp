#include "inference/eight_bits/calibration.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "program/programs.hpp"

namespace gpunn::inference {

using graph::Storage;
using graph::ValueId;

namespace {

constexpr std::size_t kBins = 2048;
constexpr float kSteps = 255;         // of a tensor without negative numbers
constexpr float kSignedSteps = 127;   // to each side, of another
constexpr std::size_t kLevels = 128;  // that entropy compares with, as Migacz has them

// The divergence of the first `bins` of a histogram, with all beyond them in the last, from what `levels` equal steps
// leave of it. Neighbouring bins of a finite sample differ by chance, and steps of one bin alone seem to keep that. So
// a few thousand numbers would lose their tail. Chance adds half a unit for each bin but the first of a level, divided
// by the count of numbers (Miller, 1955), which is subtracted.
double divergence(const std::vector<double>& histogram, std::size_t bins, std::size_t levels) {
  std::vector<double> seen(histogram.begin(), histogram.begin() + static_cast<std::ptrdiff_t>(bins));
  const std::vector<double> inside = seen;
  seen.back() += std::accumulate(histogram.begin() + static_cast<std::ptrdiff_t>(bins), histogram.end(), 0.0);
  std::vector<double> kept(bins, 0);
  double by_chance = 0;
  for (std::size_t level = 0; level < levels; ++level) {
    const std::size_t begin = level * bins / levels, end = (level + 1) * bins / levels;
    double sum = 0, filled = 0;
    for (std::size_t i = begin; i < end; ++i) {
      sum += inside[i];
      if (seen[i] > 0) filled += 1;
    }
    if (filled <= 0) continue;
    by_chance += (filled - 1) / 2;
    for (std::size_t i = begin; i < end; ++i) {
      if (seen[i] > 0) kept[i] = sum / filled;
    }
  }
  const double of_seen = std::accumulate(seen.begin(), seen.end(), 0.0);
  const double of_kept = std::accumulate(kept.begin(), kept.end(), 0.0);
  if (of_seen <= 0 || of_kept <= 0) return std::numeric_limits<double>::infinity();
  constexpr double kLeast = 1e-12;  // of a share: where nothing is kept of something
  double sum = 0;
  for (std::size_t i = 0; i < bins; ++i) {
    if (seen[i] <= 0) continue;
    const double p = seen[i] / of_seen, q = std::max(kept[i] / of_kept, kLeast);
    sum += p * std::log(p / q);
  }
  return sum - by_chance / of_seen;
}

}  // namespace

void TensorRange::see_extremes(std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) throw Error("a calibration sample gives a number that is not finite");
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
}

void TensorRange::see(std::span<const float> values) {
  histogram_.resize(kBins, 0);
  const float most = std::max(-low_, high_);
  count_ += static_cast<int64_t>(values.size());
  if (most <= 0) return;
  const float bins = static_cast<float>(kBins) / most;
  for (const float value : values) {
    // Zeros, as ReLU makes them, are stored exactly whatever the range is: they would hide the rest.
    if (value != 0) ++histogram_[std::min(static_cast<std::size_t>(std::abs(value) * bins), kBins - 1)];
  }
}

double TensorRange::threshold(RangeMethod method, double percentile) const {
  const double most = std::max(-low_, high_);
  if (method == RangeMethod::maximum || most <= 0 || histogram_.empty()) return most;
  const double bin = most / static_cast<double>(kBins);
  if (method == RangeMethod::percentile) {
    const double all = std::accumulate(histogram_.begin(), histogram_.end(), 0.0);
    double sum = 0;
    for (std::size_t i = 0; i < kBins; ++i) {
      sum += histogram_[i];
      if (sum >= all * percentile / 100) return bin * static_cast<double>(i + 1);
    }
    return most;
  }
  const std::size_t levels = low_ < 0 ? kLevels : 2 * kLevels;
  std::size_t best = kBins;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t bins = levels; bins <= kBins; bins += 8) {
    const double apart = divergence(histogram_, bins, levels);
    if (apart >= least) continue;
    least = apart;
    best = bins;
  }
  return bin * static_cast<double>(best);
}

Quantizer TensorRange::quantizer(RangeMethod method, double percentile) const {
  const auto most = static_cast<float>(threshold(method, percentile));
  if (most <= 0) return {};  // all are 0
  if (low_ < 0) return {.scale = most / kSignedSteps, .zero_point = 128};
  return {.scale = most / kSteps, .zero_point = 0};
}

TensorProbe::TensorProbe(const ForwardModel& model, ForwardProgram program, std::span<const ValueId> values,
                         int64_t rows, const Weights& weights, std::unique_ptr<execution::Backend> backend)
    : runner_(std::move(backend)), input_(model.inputs.front()), values_(values.size()) {
  graph::Graph& g = program.graph;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string name = "probe." + std::to_string(i);
    const ValueId kept = g.add_value(name, {DType::f32, g.value(values[i]).type.shape}, Storage::state);
    g.add_into(GPUNN_OP_COPY, name, {}, {values[i]}, {kept});
  }
  execution::Variables& variables = runner_.variables();
  const auto write = [&](const char* name, const TensorType& type, Storage storage, const auto& numbers) {
    if (numbers.empty()) return;
    variables.create(name, type, storage);
    variables.write(name, std::as_bytes(std::span(numbers)));
  };
  write(training::variable::kParameters, model.layout.type(), Storage::parameters, weights.parameters);
  write(training::variable::kBuffers, model.buffers.type(), Storage::state, weights.buffers);
  write_inputs(variables, model, weights);
  if (rows != model.max_batch) throw Error("a probe runs as many rows as its model has at most");
  program_ = runner_.compile(std::move(g));
}

std::vector<std::vector<float>> TensorProbe::run(std::span<const std::byte> samples, DType type) {
  execution::Executable& executable = runner_.ready(program_);
  runner_.variables().write(variable::kInput, input_standardiser(input_, type).converted(samples));
  executable.run();
  runner_.backend().synchronize();
  std::vector<std::vector<float>> results;
  for (std::size_t i = 0; i < values_; ++i) {
    const std::vector<std::byte> bytes = runner_.variables().read("probe." + std::to_string(i));
    results.emplace_back(bytes.size() / sizeof(float));
    std::memcpy(results.back().data(), bytes.data(), bytes.size());
  }
  return results;
}

}  // namespace gpunn::inference
