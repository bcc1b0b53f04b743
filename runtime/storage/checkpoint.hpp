#pragma once

#include <gpunn/model_info.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpunn::storage {

struct StoredTensor {
  std::string name;  // "conv1.weight"
  TensorType type;
  std::vector<std::byte> values;
};

// A tensor of f32, copied; `values` are as many as the shape says.
inline StoredTensor stored_floats(std::string name, Shape shape, std::span<const float> values) {
  const std::span<const std::byte> bytes = std::as_bytes(values);
  return {std::move(name), {DType::f32, std::move(shape)}, {bytes.begin(), bytes.end()}};
}

// The whole state of a training, as docs/checkpoint-format.md lays it out in HDF5.
struct Checkpoint {
  std::string experiment;          // resolved YAML
  std::string given = {};          // the experiment.yaml that the run wrote; empty: unknown
  std::optional<ModelInfo> model;  // empty: the file is of format version 1, which does not tell
  std::string backend;
  std::string created;        // UTC, ISO 8601; where empty, save_checkpoint writes the present time
  std::string gpunn_version;  // of the program that wrote it; where empty, save_checkpoint writes version()
  std::map<std::string, int64_t> counters;                     // "step", "epoch", "best_epoch", ...
  std::map<std::string, double> metrics;                       // "best", ...
  std::vector<StoredTensor> parameters;                        // in the order of the flat array
  std::vector<StoredTensor> buffers = {};                      // running statistics; in the order of their array
  std::map<std::string, std::vector<StoredTensor>> optimizer;  // by state ("velocity", "m"), same order
  std::vector<StoredTensor> state;                             // "totals", ...
};

// Writes a temporary file beside `file`, flushes it to disk, renames it over `file` and flushes the folder. On any
// failure (a full disk, say) it throws Error and leaves `file` unchanged. Removes temporary files beside `file` that a
// killed program left. Needs memory for the whole file, which is little more than its tensors.
void save_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);
// The same under several names: one file on the disk where the file system has hard links.
void save_checkpoint(const std::vector<std::filesystem::path>& files, const Checkpoint& checkpoint);

// Throws Error (missing, or failed with the mistake and its place) for a file that is missing, foreign, truncated, of a
// newer format, or that has false sizes.
Checkpoint load_checkpoint(const std::filesystem::path& file);

}  // namespace gpunn::storage
