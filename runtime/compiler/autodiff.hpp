#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace gpunn::compiler {

// Reverse-mode differentiation: appends the ops that compute d loss / d v for each v of `targets` and returns their
// values; kNoValue for a target that the loss does not depend on. loss is a scalar. `scale`, f32 0-d, multiplies all
// gradients. Throws Error if an op between a target and the loss has no gradient.
std::vector<graph::ValueId> add_gradients(graph::Graph& graph, graph::ValueId loss,
                                          const std::vector<graph::ValueId>& targets,
                                          graph::ValueId scale = graph::kNoValue);

// A value of the graph, and the gradient that reaches it from outside: of the value's type.
struct Cotangent {
  graph::ValueId value = graph::kNoValue;
  graph::ValueId gradient = graph::kNoValue;
};

// The same from the gradients that some values have: d / d v of the sum of their products with these values. Only the
// first output of an op passes a gradient on.
std::vector<graph::ValueId> add_gradients(graph::Graph& graph, const std::vector<Cotangent>& cotangents,
                                          const std::vector<graph::ValueId>& targets);

}  // namespace gpunn::compiler
