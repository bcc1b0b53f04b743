#include "bench/op_runner.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "conformance/bound_op.hpp"
#include "ops/op.hpp"

namespace gpunn::bench {

using execution::Backend;

namespace {

constexpr double kSampleMilliseconds = 2;  // well above the grain of any clock
constexpr int64_t kMostRuns = 2000;
// Beyond the last cache of any device (an H200 has 50 MB, a large server processor a few hundred).
constexpr uint64_t kColdBytes = uint64_t{512} << 20;
constexpr int64_t kMostSets = 2000;
// What an op may take in all: then it gets fewer samples, but not fewer than these.
constexpr double kMostSeconds = 2;
constexpr std::size_t kFewestSamples = 5;

uint64_t bytes_of_set(const graph::OpSignature& signature, const std::vector<int>& in_place, uint64_t alignment) {
  uint64_t bytes = 0;
  const auto add = [&](const TensorType& type) { bytes += (type.bytes() + alignment - 1) / alignment * alignment; };
  for (const TensorType& type : signature.inputs) add(type);
  for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
    if (i >= in_place.size() || in_place[i] < 0) add(signature.outputs[i]);
  }
  return std::max(bytes, alignment);
}

// As many as there must be, and no more than half of what is free.
int64_t cold_sets(uint64_t bytes, uint64_t free) {
  uint64_t sets = std::max<uint64_t>((kColdBytes + bytes - 1) / bytes, 2);
  if (free > 0) sets = std::min(sets, std::max<uint64_t>(free / 2 / bytes, 1));
  return std::min(static_cast<int64_t>(sets), kMostSets);
}

}  // namespace

OpRunner::OpRunner(Backend& backend, const graph::OpSignature& signature, const execution::Placement& placement,
                   const std::vector<Bytes>& inputs, bool cold)
    : backend_(backend),
      signature_(signature),
      placement_(placement),
      kernel_(backend.create(signature, placement)),
      what_(ops::op_info(signature.op).name),
      workspace_(backend.allocate(placement.workspace_bytes)) {
  const std::vector<int>& in_place = ops::op_info(signature.op).in_place;
  const uint64_t alignment = std::max<uint64_t>(backend.info().alignment, 1);
  if (cold) sets_ = cold_sets(bytes_of_set(signature, in_place, alignment), backend.free_bytes());
  inputs_.resize(static_cast<std::size_t>(sets_));
  outputs_.resize(static_cast<std::size_t>(sets_));
  const auto place = [&](const TensorType& type, std::vector<std::vector<gpunn_tensor>>& tensors) {
    const uint64_t step = (type.bytes() + alignment - 1) / alignment * alignment;
    memory_.push_back(backend.allocate(step * static_cast<uint64_t>(sets_)));
    auto* at = static_cast<std::byte*>(memory_.back().data());
    for (auto& set : tensors) {
      set.push_back(execution::abi_tensor(type, at));
      at += step;
    }
  };
  for (std::size_t i = 0; i < signature.inputs.size(); ++i) {
    place(signature.inputs[i], inputs_);
    const uint64_t bytes = signature.inputs[i].bytes();
    backend.upload(inputs_[0].back().data, inputs[i].data(), bytes);
    for (std::size_t set = 1; set < inputs_.size(); ++set) {
      backend.copy(inputs_[set].back().data, inputs_[0].back().data, bytes);
    }
  }
  for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
    if (i < in_place.size() && in_place[i] >= 0) {
      for (std::size_t set = 0; set < outputs_.size(); ++set) {
        outputs_[set].push_back(inputs_[set][static_cast<std::size_t>(in_place[i])]);
      }
    } else {
      place(signature.outputs[i], outputs_);
      backend.fill(memory_.back().data(), 0xFF, memory_.back().bytes());  // NaN: what stays unwritten shows
    }
  }
  backend.synchronize();
}

void OpRunner::enqueue(int64_t set) {
  const auto index = static_cast<std::size_t>(set);
  kernel_.enqueue(inputs_[index], outputs_[index], workspace_.data(), what_);
}

std::vector<OpRunner::Bytes> OpRunner::run_once() {
  enqueue(0);
  backend_.synchronize();
  std::vector<Bytes> results;
  for (std::size_t i = 0; i < signature_.outputs.size(); ++i) {
    results.emplace_back(signature_.outputs[i].bytes());
    backend_.download(results.back().data(), outputs_[0][i].data, results.back().size());
  }
  return results;
}

SampleTimes OpRunner::time(const SampleLimits& limits) {
  const auto timer = backend_.make_timer();
  const auto milliseconds = [&](const auto& run) {
    timer->start();
    run();
    timer->stop();
    return timer->milliseconds();
  };
  enqueue(0);
  backend_.synchronize();
  const double once = std::max(milliseconds([&] { enqueue(sets_ - 1); }), 1e-4);
  SampleTimes times;
  times.runs = static_cast<int64_t>(std::clamp(std::ceil(kSampleMilliseconds / once), 1.0, double{kMostRuns}));
  times.runs = std::max(times.runs, sets_);
  const auto enqueue_all = [&] {
    for (int64_t i = 0; i < times.runs; ++i) enqueue(i % sets_);
  };
  CheckCase unused;
  std::unique_ptr<Backend::Captured> graph;
  if (times.runs > 1 && conformance::is_capturable(backend_, placement_, unused)) {
    graph = execution::capture(backend_, enqueue_all);
  }
  times.captured = graph != nullptr;
  const auto sample = [&] { return milliseconds([&] { graph != nullptr ? graph->launch() : enqueue_all(); }) * 1e-3; };
  double spent = 0;
  for (int64_t i = 0; i < limits.warmup && spent < kMostSeconds / 4; ++i) spent += sample();
  spent = 0;
  for (int64_t i = 0; i < limits.repeats; ++i) {
    if (spent > kMostSeconds && times.seconds.size() >= kFewestSamples) break;
    const double seconds = sample();
    spent += seconds;
    times.seconds.push_back(seconds / static_cast<double>(times.runs));
  }
  std::ranges::sort(times.seconds);
  return times;
}

}  // namespace gpunn::bench
