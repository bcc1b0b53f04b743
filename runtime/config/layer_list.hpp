#pragma once

#include <gpunn/experiment.hpp>

#include <map>
#include <string>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/yaml_tree.hpp"

namespace gpunn::config {

// A model's `layers`, parameters put in, repeats unrolled, each layer named. In round n of a repeat the names given
// inside it end in "_n". Layer types and their parameters are not checked here. Adds the model parameters met to
// `used`.
std::vector<LayerSpec> read_layers(const YamlNode& list, const std::map<std::string, std::string>& parameters,
                                   Diagnostics& diagnostics);

}  // namespace gpunn::config
