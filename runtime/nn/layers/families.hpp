#pragma once

#include <map>
#include <string_view>

#include "nn/layers.hpp"

namespace gpunn::nn {

using LayerFunctions = std::map<std::string_view, LayerFunction>;

// The functions that build each type of config/layers/, one file for each subject, with the same name.
#define GPUNN_LAYERS(name) LayerFunctions name##_layers();
#include "config/layers/families.inc"
#undef GPUNN_LAYERS

}  // namespace gpunn::nn
