#pragma once

#include <gpunn/ops.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace gpunn::eager {

// A graph for one call. Its `externals` are the caller's arrays, in the order in which a call lists them; they are of
// Storage::state, so that no pass moves them.
struct Program {
  graph::Graph graph;
  std::vector<graph::ValueId> externals;
  std::vector<bool> read, written;  // by external: by a node
};

// The attributes of the op where some follow from the inputs.
graph::Attributes settled_attributes(int32_t op, const graph::Attributes& attrs, std::span<const TensorType> inputs);

// The op itself. Externals: the inputs, and the outputs that are not in place. Throws Error(usage) if the types do not
// fit.
Program op_program(int32_t op, const graph::Attributes& attrs, std::span<const TensorType> inputs,
                   std::span<const TensorType> outputs);

// The gradients of the inputs in `wanted`. Externals: the gradient of the first output, the inputs, all outputs, the
// gradients. An op without its own gradient is differentiated through its decomposition; inner values are computed
// again.
Program gradient_program(int32_t op, const graph::Attributes& attrs, const TensorType& cotangent,
                         std::span<const TensorType> inputs, std::span<const TensorType> outputs,
                         const std::vector<bool>& wanted, std::span<const TensorType> gradients);

}  // namespace gpunn::eager
