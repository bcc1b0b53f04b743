// The rows of the layer table, a file a subject; nn/layers/ has what builds them under the same names.
#pragma once

#include <vector>

#include "config/layer_table.hpp"

namespace gpunn::config {

#define GPUNN_LAYERS(name) std::vector<LayerType> name##_layers();
#include "config/layers/families.inc"
#undef GPUNN_LAYERS

}  // namespace gpunn::config
