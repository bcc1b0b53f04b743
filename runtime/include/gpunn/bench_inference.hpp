#pragma once

#include <gpunn/export.h>
#include <gpunn/model.hpp>
#include <gpunn/profile.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gpunn {

// Calls of a model with so many rows, one after the other, from and to host memory.
struct InferenceBenchRow {
  int64_t rows = 0;
  int64_t calls = 0;         // that were timed
  double least_seconds = 0;  // of a call
  double p50_seconds = 0, p99_seconds = 0;
  double rows_per_second = 0;  // at the median
  // Of the program alone, without copies from and to the host: the median of groups of runs that are launched back to
  // back and waited for once.
  double device_seconds = 0;
  uint64_t memory_bytes = 0;  // on the device: weights, constants and activations of a model for so many rows
  std::optional<ProfileReport> profile = {};  // of its ops, where one is asked for
};

// The time of calls of a trained model: an entry for each number of rows in a call.
struct InferenceBenchReport {
  std::string model, backend, device;
  double load_seconds = 0;  // until the first model was ready to be called
  std::vector<InferenceBenchRow> rows;
};

// Which numbers of rows are timed, and for how long.
struct InferenceBenchOptions {
  std::vector<int64_t> batches = {1, 8, 64};
  double seconds = 2;  // that calls of each number of rows are timed for, 30 calls at least
  int64_t warmup = 5;  // calls
  // Times the ops, too. An empty file: no trace is written; a file needs a single number of rows.
  std::optional<ProfileOptions> profile = {};
};

// On random samples. `model_options.max_batch` and `calls` are set by the batches. Throws what Model::load does.
GPUNN_API InferenceBenchReport bench_inference(const std::filesystem::path& model, const InferenceBenchOptions& options,
                                               const ModelOptions& model_options = {});

}  // namespace gpunn
