#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "nn/frozen/frozen_network.hpp"
#include "nn/frozen/known_networks.hpp"

namespace gpunn::training {

// Which network looks at images, and at which of its layers they are compared.
struct FrozenRequest {
  std::string network = "vgg19";  // a known network, or a run folder, a checkpoint or an ONNX file
  std::filesystem::path weights;  // of a known network: a .safetensors file; empty: looked for in $GPUNN_DATA_DIR
  nn::Colours colours = nn::Colours::centred;  // of these weights
  std::vector<std::string> content, style;     // layers; empty: those that the network is known for
  uint64_t seed = 1;                           // of drawn weights
};

struct LoadedFrozen {
  nn::FrozenNetwork network;
  std::vector<std::string> content, style;  // layers
  double content_weight = 1, style_weight = 1;
  std::vector<std::string> notes;  // what the user is to hear
};

// Throws Error: usage for a layer or network that is not there, missing for a file, and where a tensor is not in it.
LoadedFrozen load_frozen(const FrozenRequest& request);

}  // namespace gpunn::training
