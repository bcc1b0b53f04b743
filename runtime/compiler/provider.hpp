#pragma once

#include <functional>
#include <limits>

#include "graph/graph.hpp"

namespace gpunn::compiler {

// The place in the backend's chain that serves an op: 0 is the overlay on top, -1: no plugin serves it. Plugins that
// are alternatives share a place.
using Provider = std::function<int(const graph::OpSignature&)>;

// The plugin that serves an op, by its place, and the score that it gives its kernel; level -1: none does.
struct Offer {
  int level = -1;
  int score = 0;
  double seconds = 0;  // what the kernel takes; 0: not measured
};
using Offers = std::function<Offer(const graph::OpSignature&)>;

// A place to compare with others: an op that no plugin serves ranks below every plugin.
inline int chain_rank(int level) { return level < 0 ? std::numeric_limits<int>::max() : level; }

}  // namespace gpunn::compiler
