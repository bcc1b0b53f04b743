// Muon's step for matrices, composed of existing ops. (Jordan et al., 2024.)
#pragma once

#include <gpunn/optimizer_config.hpp>

#include "graph/graph.hpp"
#include "program/layout.hpp"
#include "program/optimizer_ops.hpp"

namespace gpunn::training {

// The momentum's step, made nearly orthogonal by five Newton-Schulz iterations, for each matrix of the range; a
// convolution's filters are the rows of one. `values.rate` is the range's, `mean` the flat array of running means.
void add_muon(graph::Graph& graph, const OptimizerConfig& config, const ParameterLayout& layout,
              const UpdateRange& range, const UpdateValues& values, graph::ValueId mean);

}  // namespace gpunn::training
