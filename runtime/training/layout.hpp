#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "nn/model.hpp"

namespace gpunn::training {

// Where each parameter lies in the flat arrays of parameters, gradients and optimizer states: the decayed ones first,
// each part in the order of the layers, every tensor aligned as the device asks. The gaps stay zero.
struct ParameterLayout {
  std::vector<nn::Parameter> parameters;  // in the order of the layers
  std::vector<int64_t> offset;            // elements, by parameter
  int64_t decayed = 0;                    // elements of the decayed part
  int64_t total = 0;

  TensorType type() const { return {DType::f32, {total}}; }
  int64_t count() const;  // of trainable numbers, without the gaps
};

// `alignment` in bytes, a power of two.
ParameterLayout lay_out(std::vector<nn::Parameter> parameters, uint64_t alignment);

// The parameters as views of a flat value, in the order of the layers.
std::vector<graph::ValueId> add_parameter_views(graph::Graph& graph, const ParameterLayout& layout,
                                                graph::ValueId flat);

}  // namespace gpunn::training
