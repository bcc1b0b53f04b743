#pragma once

#include <gpunn/model_spec.hpp>

#include <cstddef>
#include <vector>

#include "config/diagnostics.hpp"

namespace gpunn::config {

inline constexpr int kModelInput = -1;

struct LayerOrder {
  std::vector<std::vector<int>> inputs;  // of each layer: indices of layers, or kModelInput
  std::vector<std::size_t> order;        // the layers such that each comes after its inputs
};

// Resolves the names in `from` and sorts. Reports names that no layer has, cycles (with their layers), and layers that
// nothing leads from to the last one, which is the model's output.
LayerOrder order_layers(const ModelSpec& model, Diagnostics& diagnostics);

}  // namespace gpunn::config
