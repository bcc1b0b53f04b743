#pragma once

#include <gpunn/model_spec.hpp>

#include "config/diagnostics.hpp"
#include "config/yaml_tree.hpp"

namespace gpunn::config {

inline constexpr std::size_t kMostLayers = 10'000;

// An experiment's `model`: a map with `file` (and `parameters`), or a model inline. Checks all that can be known
// without the data: names, types, parameters, values, cycles.
ModelSpec read_model(const YamlNode& node, Diagnostics& diagnostics);

}  // namespace gpunn::config
