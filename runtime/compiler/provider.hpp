#pragma once

#include <functional>
#include <limits>

#include "graph/graph.hpp"

namespace gpunn::compiler {

// The place in the backend's chain that serves an op: 0 is the overlay on top, -1: no plugin serves it.
using Provider = std::function<int(const graph::OpSignature&)>;

// A place to compare with others: an op that no plugin serves ranks below every plugin.
inline int chain_rank(int level) { return level < 0 ? std::numeric_limits<int>::max() : level; }

}  // namespace gpunn::compiler
