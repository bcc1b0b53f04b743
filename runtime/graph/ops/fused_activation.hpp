#pragma once

#include <cstdint>
#include <string>

#include "graph/graph.hpp"

namespace gpunn::graph {

// The activation that composites carry as an attribute, taken apart into core ops.

std::string activation_text(int32_t activation);  // "relu"; "" for none

// output = activation(x + bias).
void add_bias_and_activation(Graph& graph, const std::string& name, ValueId x, ValueId bias, int32_t activation,
                             ValueId output);

// dx = dy times the activation's derivative, from the activation's output y.
void add_activation_backward(Graph& graph, const std::string& name, ValueId dy, ValueId y, int32_t activation,
                             ValueId dx);

}  // namespace gpunn::graph
