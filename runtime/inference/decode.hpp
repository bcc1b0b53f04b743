#pragma once

#include <gpunn/model.hpp>

#include <cstdint>
#include <span>

namespace gpunn::inference {

// What a classification makes of a row's class probabilities: its `top` largest, equal ones in the order of the
// classes.
Decoded decode(const ModelInfo& info, std::span<const float> probabilities, int64_t top);

}  // namespace gpunn::inference
