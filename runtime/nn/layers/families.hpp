#pragma once

#include <map>
#include <string_view>

#include "nn/layers.hpp"

namespace gpunn::nn {

using LayerFunctions = std::map<std::string_view, LayerFunction>;

// What builds each type of config/layers/, a file a subject under the same name.
LayerFunctions convolution_layers();
LayerFunctions linear_layers();
LayerFunctions activation_layers();
LayerFunctions pooling_layers();
LayerFunctions upsampling_layers();
LayerFunctions normalization_layers();
LayerFunctions shape_layers();
LayerFunctions dropout_layers();
LayerFunctions merge_layers();
LayerFunctions attention_layers();

}  // namespace gpunn::nn
