#pragma once

#include <gpunn/model_spec.hpp>

#include <vector>

#include "config/blocks.hpp"
#include "config/diagnostics.hpp"
#include "config/model_ends.hpp"
#include "config/yaml_tree.hpp"

namespace gpunn::config {

// Reads a model's `layers` as plain layers: parameters inserted, repeats unrolled, blocks and branches expanded, each
// layer named and each `from` a layer's full name. In round n of a repeat the names inside it end in "_n"; in a block
// or branch they begin with its name: "stage2.0.conv1". Sets the layers and outputs of a model whose parameters and
// inputs are known. Layer types and their parameters are not checked here.
void read_layers(const YamlNode& list, const Blocks& blocks, const std::vector<PlacedOutput>& outputs, ModelSpec& model,
                 Diagnostics& diagnostics);

}  // namespace gpunn::config
