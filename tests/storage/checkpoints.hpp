// Checkpoints to test with, and a folder that vanishes with the test.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <unistd.h>

#include "storage/checkpoint.hpp"
#include "temporary_folder.hpp"

namespace storage_test {

namespace fs = std::filesystem;
using gpunn::DType;
using gpunn::Shape;
using gpunn::storage::Checkpoint;
using gpunn::storage::StoredTensor;

using Folder = gpunn::testing::TemporaryFolder;

// Bytes that differ from place to place and from seed to seed.
inline StoredTensor tensor(const std::string& name, DType dtype, const Shape& shape, unsigned seed = 1) {
  StoredTensor result{name, {dtype, shape}, {}};
  result.values.resize(result.type.bytes());
  uint32_t state = seed * 2654435761U + 12345U;
  for (std::byte& value : result.values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<std::byte>(state >> 24U);
  }
  return result;
}

inline Checkpoint small_checkpoint(unsigned seed = 1) {
  Checkpoint result;
  result.experiment = "name: lenet\nepochs: 10  # \xC3\xA9\n";
  result.backend = "cpu";
  result.created = "2025-01-02T03:04:05Z";
  result.gpunn_version = "0.1.0";
  result.counters = {{"step", 469}, {"epoch", 1}, {"best_epoch", -1}, {"seed", static_cast<int64_t>(seed)}};
  result.metrics = {{"best", 0.9876543210123456}, {"loss", 1e-300}};
  result.parameters = {tensor("conv1.weight", DType::f32, {6, 1, 5, 5}, seed),
                       tensor("conv1.bias", DType::f32, {6}, seed), tensor("a.before.z", DType::f32, {3, 2}, seed)};
  result.buffers = {tensor("bn1.running_mean", DType::f32, {6}, seed)};
  result.optimizer["velocity"] = {tensor("conv1.weight", DType::f32, {6, 1, 5, 5}, seed + 1)};
  result.optimizer["m"] = {tensor("conv1.weight", DType::f32, {6, 1, 5, 5}, seed + 2)};
  result.state = {tensor("totals", DType::f64, {3}, seed)};
  return result;
}

inline bool same(const std::vector<StoredTensor>& a, const std::vector<StoredTensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name || a[i].type != b[i].type || a[i].values != b[i].values) return false;
  }
  return true;
}

inline bool same(const Checkpoint& a, const Checkpoint& b) {
  if (a.optimizer.size() != b.optimizer.size()) return false;
  for (const auto& [name, tensors] : a.optimizer) {
    if (b.optimizer.count(name) == 0 || !same(tensors, b.optimizer.at(name))) return false;
  }
  return a.experiment == b.experiment && a.backend == b.backend && a.created == b.created &&
         a.gpunn_version == b.gpunn_version && a.counters == b.counters && a.metrics == b.metrics &&
         same(a.parameters, b.parameters) && same(a.buffers, b.buffers) && same(a.state, b.state);
}

inline std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write_bytes(const fs::path& file, const std::string& bytes) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace storage_test
