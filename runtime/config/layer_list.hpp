#pragma once

#include <gpunn/model_spec.hpp>

#include <map>
#include <string>
#include <vector>

#include "config/blocks.hpp"
#include "config/diagnostics.hpp"
#include "config/yaml_tree.hpp"

namespace gpunn::config {

// A model's `layers` as plain layers: parameters inserted, repeats unrolled, blocks and branches expanded, each layer
// named and each `from` a layer's full name. In round n of a repeat the names inside it end in "_n"; in a block or
// branch they begin with its name: "stage2.0.conv1". Layer types and their parameters are not checked here.
std::vector<LayerSpec> read_layers(const YamlNode& list, const std::map<std::string, std::string>& parameters,
                                   const Blocks& blocks, Diagnostics& diagnostics);

}  // namespace gpunn::config
