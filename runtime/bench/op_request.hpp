#pragma once

#include <string>

#include "graph/graph.hpp"

namespace gpunn::bench {

// The op and types that `gpunn bench op NAME SHAPE` means. Throws Error(usage) with the form that the op expects.
graph::OpSignature parse_request(const std::string& op, const std::string& shape);

}  // namespace gpunn::bench
