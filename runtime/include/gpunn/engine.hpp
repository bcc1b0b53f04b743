#pragma once

#include <gpunn/export.h>
#include <gpunn/model.hpp>
#include <gpunn/plan.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gpunn {

// A pass over the program of a model that is called. ModelOptions.without_passes leaves passes out, by name.
struct EnginePass {
  std::string name;     // "fold_constants"
  std::string summary;  // what it does
};

// In the order in which they run.
GPUNN_API const std::vector<EnginePass>& engine_passes();

// The program that a model runs for so many rows, after the passes; PlanReport.passes says what each of them did.
// Throws what Model::load does.
GPUNN_API PlanReport plan_inference(const std::filesystem::path& model, int64_t rows, const ModelOptions& options = {});

}  // namespace gpunn
