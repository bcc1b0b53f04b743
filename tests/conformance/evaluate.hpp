// A graph evaluated node by node by the oracle.
#pragma once

#include <map>
#include <vector>

#include "conformance/oracle.hpp"
#include "graph/graph.hpp"

namespace conformance_test {

using ValueMap = std::map<gpunn::graph::ValueId, gpunn::conformance::OracleTensor>;

// Adds to `values` what every node makes. Values that no node makes must be there.
inline void evaluate(const gpunn::graph::Graph& graph, ValueMap& values) {
  for (const gpunn::graph::Node& node : graph.nodes()) {
    std::vector<gpunn::conformance::OracleTensor> inputs;
    for (const gpunn::graph::ValueId id : node.inputs) inputs.push_back(values.at(id));
    const auto outputs = gpunn::conformance::run_oracle(graph.signature(node), inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) values[node.outputs[i]] = outputs[i];
  }
}

}  // namespace conformance_test
