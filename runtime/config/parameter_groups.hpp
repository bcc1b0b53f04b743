#pragma once

#include <gpunn/parameter_group.hpp>

#include <optional>
#include <string>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/yaml_tree.hpp"

namespace gpunn::config {

// Reads a list of maps with `match` and the settings of the parameters that match. Adds a diagnostic for each mistake,
// and returns an empty value if there is any. `path` names the key in messages.
std::optional<std::vector<ParameterGroup>> read_groups(const std::string& path, const YamlNode& list,
                                                       Diagnostics& diagnostics);

}  // namespace gpunn::config
