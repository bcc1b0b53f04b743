#pragma once

#include <gpunn/export.h>
#include <gpunn/model.hpp>
#include <gpunn/plan.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gpunn {

// A pass over the program of a model for inference. ModelOptions.without_passes leaves passes out by name.
struct EnginePass {
  std::string name;     // "fold_constants"
  std::string summary;  // what the pass does
};

// All passes, in the order in which they run.
GPUNN_API const std::vector<EnginePass>& engine_passes();

// The program that a model runs for this many rows, after the passes. PlanReport.passes tells what each pass changed.
// Throws what Model::load throws.
GPUNN_API PlanReport plan_inference(const std::filesystem::path& model, int64_t rows, const ModelOptions& options = {});

// What export_engine() wrote.
struct EngineExportReport {
  std::filesystem::path file;
  std::string backend, device;
  std::vector<int64_t> batches;
  int64_t ops = 0;        // of the program for the largest batch
  int64_t constants = 0;  // tensors that ops made of the weights
  uint64_t file_bytes = 0;
};

// Plans a model's programs for calls of so many rows each, on the backend that the options name, and writes them as an
// engine: NAME.engine, which Model::load opens without planning. It has the weights, batch norms folded, and what ops
// make of them; it answers only, and only where gpunn, the plugins, the device and its driver are the same. A call
// takes the program for the fewest rows that are enough. Throws what Model::load does.
GPUNN_API EngineExportReport export_engine(const std::filesystem::path& model, const std::filesystem::path& file,
                                           std::vector<int64_t> batches, const ModelOptions& options = {});

}  // namespace gpunn
