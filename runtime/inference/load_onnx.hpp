#pragma once

#include <gpunn/experiment.hpp>

#include <filesystem>
#include <vector>

#include "storage/checkpoint.hpp"

namespace gpunn::inference {

// An ONNX file as a trained model: as if a checkpoint held it.
struct OnnxModelFile {
  storage::Checkpoint checkpoint;
  Experiment experiment;
};

// Throws Error: what import_onnx() throws, and usage where the file's own word about its model does not fit its graph.
OnnxModelFile load_onnx(const std::filesystem::path& file, const std::vector<Override>& overrides);

}  // namespace gpunn::inference
