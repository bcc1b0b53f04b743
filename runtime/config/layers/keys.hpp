// Keys and bounds that several layers have.
#pragma once

#include "config/layer_table.hpp"

namespace gpunn::config {

constexpr double kMostChannels = 65536;
constexpr double kMostUnits = 1 << 24;
constexpr double kMostDimensions = 7;  // of a sample
constexpr double kLargestWindow = 4096;
constexpr Range kWindow = between(1, kLargestWindow);
constexpr Range kMargin = between(0, kLargestWindow);

LayerKey activation_key();
LayerKey bias_key();
LayerKey init_key();
LayerKey int8_weight_key();

}  // namespace gpunn::config
