#pragma once

#include <cstdint>

#include "graph/graph.hpp"

namespace gpunn::compiler {

// Has neighbouring parameters of a flat array converted to half precision by one COPY of them all, in place of one for
// each: small kernels cost a launch each, whatever they do. The converted weights are views of its result. Filters that
// have a layout to choose keep a COPY of their own, which converts and transposes in one. `alignment` in bytes, of
// every view.
void join_conversions(graph::Graph& graph, uint64_t alignment);

}  // namespace gpunn::compiler
