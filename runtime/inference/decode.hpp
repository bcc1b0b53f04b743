#pragma once

#include <gpunn/model.hpp>

#include <array>
#include <cstdint>
#include <span>

namespace gpunn::inference {

// What the two outputs of a task's models are called: what the last layer gives, and what it means.
std::array<const char*, 2> output_names(const ModelInfo& info);

// What the task makes of a row's predictions, in the units of its data: of classes and labels the `top` most probable,
// equal ones in their order, of a regression its numbers.
Decoded decode(const ModelInfo& info, std::span<const float> predictions, int64_t top);

}  // namespace gpunn::inference
