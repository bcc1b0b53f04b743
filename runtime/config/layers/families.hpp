// The rows of the layer table, a file a subject; nn/layers/ has what builds them under the same names.
#pragma once

#include <vector>

#include "config/layer_table.hpp"

namespace gpunn::config {

std::vector<LayerType> convolution_layers();
std::vector<LayerType> linear_layers();
std::vector<LayerType> activation_layers();
std::vector<LayerType> pooling_layers();
std::vector<LayerType> upsampling_layers();
std::vector<LayerType> normalization_layers();
std::vector<LayerType> shape_layers();
std::vector<LayerType> dropout_layers();
std::vector<LayerType> merge_layers();
std::vector<LayerType> attention_layers();

}  // namespace gpunn::config
