#pragma once

#include <gpunn/tensor_type.hpp>

#include <nlohmann/json.hpp>

namespace gpunn::inference {

// A tensor's type in an engine file: {"dtype": "f32", "shape": [1, 2], "channels_last": false}.
nlohmann::ordered_json type_json(const TensorType& type);
// Throws Error for a type that no memory could hold.
TensorType type_of(const nlohmann::ordered_json& json);

}  // namespace gpunn::inference
