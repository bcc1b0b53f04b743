#pragma once

#include <gpunn/model_spec.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/layer_table.hpp"
#include "graph/graph.hpp"
#include "nn/model.hpp"

namespace gpunn::nn {

// The parts from which a layer is built.
struct LayerContext {
  graph::Graph& graph;
  const LayerSpec& layer;
  const config::LayerArguments& arguments;
  const std::vector<graph::ValueId>& inputs;
  const ForwardOptions& options;
  uint64_t index;                                             // of the layer in the model
  const std::function<graph::ValueId(Parameter)>& parameter;  // a trainable tensor of "<layer>.<name>"
  const std::function<graph::ValueId(Parameter)>& buffer;     // one that is kept from step to step, without a gradient
  const std::vector<std::string>& producers;                  // of the inputs, for messages

  const Shape& input_shape(std::size_t i = 0) const { return graph.value(inputs[i]).type.shape; }
  // "[1, 8, 28, 28] of 'stem' in line 9", for messages.
  std::string input_text(std::size_t i) const;
};

// Appends a layer's ops, core ops only, and returns its output. Throws Error saying what shape it expected and found.
using LayerFunction = graph::ValueId (*)(const LayerContext&);

// The function for a type of config::layer_table(); throws Error if there is none.
LayerFunction layer_function(std::string_view type);

// Throws Error if a tensor is larger than any memory, so that products of hostile sizes do not overflow.
void require_sane_size(const Shape& shape);

}  // namespace gpunn::nn
