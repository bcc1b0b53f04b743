#pragma once

#include <gpunn/model_info.hpp>

#include <string>
#include <vector>

namespace gpunn::interchange {

// A warning for each column whose numbers f32, the type of the ONNX model's input and output, rounds too coarsely
// around the column's mean. Inputs count if they are `raw`.
std::vector<std::string> rounding_warnings(const ModelInfo& info, bool raw);

}  // namespace gpunn::interchange
