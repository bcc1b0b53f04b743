#pragma once

#include <gpunn/model_info.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "execution/steps/compiler.hpp"
#include "inference/forward_weights.hpp"
#include "storage/checkpoint.hpp"

namespace gpunn::inference {

// A plugin of the chain that an engine was planned for.
struct EnginePlugin {
  std::string name, version;
  bool operator==(const EnginePlugin&) const = default;
};

// What an engine was planned for. It runs where all of this is equal, and nowhere else.
struct EngineTarget {
  std::string gpunn;  // version
  int64_t abi_major = 0, abi_minor = 0;
  std::vector<EnginePlugin> plugins;  // of the chain, overlay first
  std::string device, driver;
  int64_t compute_units = 0;
  int64_t alignment = 1;  // of tensors, in bytes
  bool operator==(const EngineTarget&) const = default;
};

// How what is here differs from what an engine was planned for, a line each: "the driver '560.2', here it is '570.1'".
// Empty: in nothing.
std::string differences(const EngineTarget& here, const EngineTarget& planned);
EngineTarget target_of(const execution::Backend& backend);

// A model with its programs planned for one backend, as an engine file holds it.
struct SavedEngine {
  std::string file;  // that it was read from, for errors
  EngineTarget target;
  std::string experiment;  // YAML, resolved
  ModelInfo info;
  std::map<int64_t, execution::CompiledProgram> programs;  // by rows
  Weights weights;  // with norms folded in; given to the device when the engine is opened

  int64_t max_batch() const { return programs.rbegin()->first; }
  // The fewest rows that a program is for, and that are at least so many.
  int64_t planned_rows(int64_t rows) const { return programs.lower_bound(rows)->first; }
};

struct ForwardModel;
// Throws Error where the weights or programs are not those of the model, a tensor would lie outside of its memory, or
// the device has too little memory.
void require_runnable(const SavedEngine& engine, const ForwardModel& model, const execution::Backend& backend);
// Throws Error(usage) where the model is of an engine that has no program for so many rows.
void require_planned(const ForwardModel& model, int64_t rows);

// docs/inference.md has the layout. The bytes are not believed: throws Error naming `origin` where they are truncated,
// damaged, of another version of the format, or describe no program.
SavedEngine parse_engine(std::string_view bytes, const std::string& origin);
SavedEngine load_engine(const std::filesystem::path& file);
// Writes beside `file` and renames.
void save_engine(const std::filesystem::path& file, const SavedEngine& engine);

// Whether a path is to be read as an engine: by its ending.
bool is_engine(const std::filesystem::path& file);

}  // namespace gpunn::inference
