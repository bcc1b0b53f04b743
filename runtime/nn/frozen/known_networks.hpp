#pragma once

#include <gpunn/loss_config.hpp>
#include <gpunn/model_spec.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "nn/frozen/frozen_network.hpp"

namespace gpunn::nn {

SeenColours seen_colours(FeatureColours colours);

// A network whose layers gpunn knows.
struct KnownNetwork {
  std::string name;
  std::string help;        // one clause
  std::string names = {};  // rows of a table of names: what torchvision calls its tensors
  std::string file = {};   // what a file of its weights is usually called; empty: its weights are drawn
  std::vector<std::string> content_layers, style_layers;  // that are compared unless others are asked for
  double content_weight = 1, style_weight = 1;            // likewise
};

const std::vector<KnownNetwork>& known_networks();
std::vector<std::string> known_network_names();
const KnownNetwork& known_network(std::string_view name);  // throws Error(usage) where there is none

// All of its layers.
ModelSpec known_model(const KnownNetwork& network);

}  // namespace gpunn::nn
