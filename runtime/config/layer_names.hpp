// Names of a model's layers, as patterns of an experiment take them.
#pragma once

#include <gpunn/model_spec.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace gpunn::config {

// The layers, and the blocks around them: of 'stage1.0.conv1' also 'stage1' and 'stage1.0'. Each name once.
std::vector<std::string> layers_and_blocks(const ModelSpec& model);

// The outermost block around a layer that a pattern matches, or else the layer itself. Empty: neither matches.
std::string_view outermost_match(const std::vector<std::string>& patterns, std::string_view layer);

}  // namespace gpunn::config
