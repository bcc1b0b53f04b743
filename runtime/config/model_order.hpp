#pragma once

#include <gpunn/model_spec.hpp>

#include <cstddef>
#include <vector>

#include "config/diagnostics.hpp"

namespace gpunn::config {

// The place of a value: the index of a layer, or a number below 0 for an input of the model.
constexpr int input_source(std::size_t number) { return -1 - static_cast<int>(number); }
constexpr std::size_t input_number(int source) { return static_cast<std::size_t>(-1 - source); }

struct LayerOrder {
  std::vector<std::vector<int>> inputs;  // of each layer: the places of what it takes
  std::vector<std::size_t> order;        // the layers such that each comes after its inputs
  std::vector<std::size_t> outputs;      // layers: the model's outputs, in their order
};

// Resolves the names in `from` and sorts. Reports names that no layer or input has, cycles (with their layers), and
// layers and inputs that no output depends on.
LayerOrder order_layers(const ModelSpec& model, Diagnostics& diagnostics);

}  // namespace gpunn::config
