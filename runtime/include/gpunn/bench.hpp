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
  uint64_t peak_bytes = 0;
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
