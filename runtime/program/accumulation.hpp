// A step whose batch passes through the model in parts, for models whose activations leave no room for all of it.
#pragma once

#include <cstdint>
#include <string>

#include "graph/graph.hpp"
#include "program/batch_ops.hpp"

namespace gpunn::training {

// Part `part` of `parts` equal ones of a batch that is full: its rows, copied to where a tensor may begin.
Batch add_part(graph::Graph& graph, const Batch& batch, int64_t part, int64_t parts);

// Adds a part's value to the sum of those before; with the last part the sum becomes their mean.
void add_to_mean(graph::Graph& graph, const std::string& name, graph::ValueId sum, graph::ValueId value, int64_t part,
                 int64_t parts);

}  // namespace gpunn::training
