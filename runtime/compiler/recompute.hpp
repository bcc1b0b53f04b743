#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "compiler/value_use.hpp"
#include "graph/graph.hpp"

namespace gpunn::compiler {

// Ends the name of a node that computes an activation again.
inline constexpr std::string_view kRecomputedSuffix = ".recompute";

// The stage of a layer whose activations are kept.
inline constexpr int kKept = -1;

// Gradient checkpointing (Chen et al., "Training deep nets with sublinear memory cost", 2016). `stage_of` has the stage
// of each layer, by the name of its nodes, or kKept. The nodes from `backward` on, which add_gradients() has appended,
// then read values that copies of a stage's nodes compute again, each in front of the first node that needs it. A value
// that another stage reads is kept: that stage begins with it.
//
// Copies compute the same bits: random numbers are functions of counters, and running statistics are not updated twice.
// What can't be computed again, since an op has overwritten what it was made of, is kept.
void recompute_stages(graph::Graph& graph, NodeRange forward, std::size_t backward,
                      const std::map<std::string, int>& stage_of);

}  // namespace gpunn::compiler
