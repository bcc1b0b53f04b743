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

// Calls of a model with this many rows, one after another. Samples and outputs are in host memory.
struct InferenceBenchRow {
  int64_t rows = 0;
  int64_t calls = 0;         // timed calls
  double least_seconds = 0;  // shortest call
  double p50_seconds = 0, p99_seconds = 0;
  double rows_per_second = 0;  // at the median
  // The time of the program alone, without copies to and from the host: the median of groups of launches. The host
  // waits once a group.
  double device_seconds = 0;
  uint64_t memory_bytes = 0;  // on the device: weights, constants and activations of a model for this many rows
  std::optional<ProfileReport> profile = {};  // of its ops; empty: not asked for
};

// The time of calls of a trained model: an entry for each number of rows in a call.
struct InferenceBenchReport {
  std::string model, backend, device;
  double load_seconds = 0;  // until the first model can be called
  std::vector<InferenceBenchRow> rows;
};

// Which numbers of rows are timed, and for how long.
struct InferenceBenchOptions {
  std::vector<int64_t> batches = {1, 8, 64};
  double seconds = 2;  // of timed calls for each number of rows; at least 30 calls
  int64_t warmup = 5;  // calls
  // Times the ops as well. An empty file name: no trace is written. A file needs a single number of rows.
  std::optional<ProfileOptions> profile = {};
};

// Times calls on random samples. `batches` sets `model_options.max_batch` and `calls`. Throws what Model::load throws.
GPUNN_API InferenceBenchReport bench_inference(const std::filesystem::path& model, const InferenceBenchOptions& options,
                                               const ModelOptions& model_options = {});

}  // namespace gpunn
