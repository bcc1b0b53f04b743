#pragma once

#include <gpunn/experiment.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gpunn {

struct BenchReport {
  std::string what;  // "matmul 1024x1024x1024", or the experiment's name
  std::string backend;
  std::string notice;  // what the user must know, as of a data set in place of the one asked for; empty: nothing
  int64_t repeats = 0;
  double median_seconds = 0, min_seconds = 0, max_seconds = 0;
  double gflops = 0;             // per second at the median; 0 where not counted
  double gigabytes = 0;          // per second, tensors read and written once
  double images_per_second = 0;  // of a training step
  uint64_t peak_bytes = 0;       // of buffers on the device, a data set that lies there excluded

  // Of a training step.
  uint64_t arena_bytes = 0, persistent_bytes = 0, data_bytes = 0;
  int64_t allocations = 0;       // of device memory, in all timed steps together
  int64_t synchronizations = 0;  // how often a timed step had the host wait for the device
  bool captured = false;         // whether the steps are launches of a captured graph
  std::string eager_reason;      // why they are not

  // The pool that serves buffers that no plan knows.
  int64_t pool_requests = 0, pool_hits = 0;
  double pool_hit_rate = 0;
  uint64_t pool_peak_bytes = 0;
};

struct BenchOptions {
  std::string backend = "auto";
  std::vector<std::filesystem::path> plugins;
  int64_t repeats = 30;
  int64_t warmup = 3;
  int threads = 0;
};

// One op. shape is "MxNxK" for matmul and "N,C,H,W,K,R,S[,stride=2,pad=1,groups=1]" for the convolutions; an
// element-wise op takes its dimensions. Random data.
BenchReport bench_op(const std::string& op, const std::string& shape, const BenchOptions& options);

// One training step of an experiment, on its own data.
BenchReport bench_experiment(const Experiment& experiment, const BenchOptions& options);

}  // namespace gpunn
