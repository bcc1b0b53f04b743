#include "cuda_common/trial_timer.hpp"

#include <algorithm>
#include <exception>
#include <limits>

#include "cuda_common/check.hpp"
#include "cuda_common/workspace.hpp"

namespace gpunn::cuda {
namespace {

constexpr double kRepeatedMilliseconds = 0.5;  // of one measurement
constexpr int kMostRepetitions = 10;
constexpr int kMeasurements = 3;

}  // namespace

Scratch::Scratch(uint64_t bytes) { check(cudaMalloc(&data_, bytes), "getting memory to try algorithms on"); }
Scratch::~Scratch() { cudaFree(data_); }

void* Scratch::take(uint64_t bytes) {
  void* part = static_cast<char*>(data_) + used_;
  used_ += workspace_aligned(bytes);
  return part;
}

double TrialTimer::milliseconds(const std::function<void()>& enqueue) {
  const double once = timed(enqueue);
  const int repetitions = static_cast<int>(
      std::clamp(kRepeatedMilliseconds / std::max(once, 1e-4), 1.0, static_cast<double>(kMostRepetitions)));
  const std::unique_ptr<plugin::CapturedGraph> graph = captured(enqueue, repetitions);
  graph->launch(stream_);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kMeasurements; ++i) best = std::min(best, timed([&] { graph->launch(stream_); }));
  return best / repetitions;
}

std::unique_ptr<plugin::CapturedGraph> TrialTimer::captured(const std::function<void()>& enqueue, int repetitions) {
  stream_.begin_capture();
  try {
    for (int i = 0; i < repetitions; ++i) enqueue();
  } catch (...) {
    try {
      stream_.end_capture();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the first error is the one to tell
    }
    throw;
  }
  return stream_.end_capture();
}

double TrialTimer::timed(const std::function<void()>& work) {
  start_.record(stream_);
  work();
  stop_.record(stream_);
  stop_.synchronize();
  return static_cast<double>(stop_.milliseconds_since(start_));
}

}  // namespace gpunn::cuda
