#pragma once

#include <cstdint>
#include <filesystem>

#include "export/onnx_model.hpp"

namespace gpunn::interchange {

// The version of the format that came with an opset.
int64_t ir_version(int64_t opset);

// Whether a file beside the model would have any of its tensors.
bool has_large_tensors(const OnnxModel& model);

// Writes the model to `file`, and, where `data` is given, its larger tensors to that one first. Each is replaced as a
// whole.
void write_onnx(const OnnxModel& model, const std::filesystem::path& file, const std::filesystem::path& data);

}  // namespace gpunn::interchange
