// A graph evaluated node by node by the reference.
#pragma once

#include <map>
#include <stdexcept>
#include <vector>

#include "graph/graph.hpp"
#include "ops/reference.hpp"

namespace ops_test {

using ValueMap = std::map<gpunn::graph::ValueId, gpunn::ops::ReferenceTensor>;

// A value, or the whole of another under a type of its own.
inline gpunn::ops::ReferenceTensor tensor_at(const gpunn::graph::Graph& graph, const ValueMap& values,
                                             gpunn::graph::ValueId id) {
  const gpunn::graph::Value& value = graph.value(id);
  if (value.view_of == gpunn::graph::kNoValue) return values.at(id);
  gpunn::ops::ReferenceTensor tensor = tensor_at(graph, values, value.view_of);
  if (value.view_offset != 0 || tensor.type.elements() != value.type.elements()) {
    throw std::logic_error("a view of a part of " + graph.value(value.view_of).name);
  }
  tensor.type = value.type;
  return tensor;
}

// Adds to `values` what every node makes. Values that no node makes must be there.
inline void evaluate(const gpunn::graph::Graph& graph, ValueMap& values) {
  for (const gpunn::graph::Node& node : graph.nodes()) {
    std::vector<gpunn::ops::ReferenceTensor> inputs;
    for (const gpunn::graph::ValueId id : node.inputs) inputs.push_back(tensor_at(graph, values, id));
    const auto outputs = gpunn::ops::run_reference(graph.signature(node), inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      values[node.outputs[i]] = outputs[i];
      const gpunn::graph::ValueId whole = graph.root(node.outputs[i]);
      const gpunn::TensorType& type = graph.value(whole).type;
      if (type.elements() == outputs[i].type.elements()) values[whole] = {type, outputs[i].values};
    }
  }
}

}  // namespace ops_test
