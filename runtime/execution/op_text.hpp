#pragma once

#include <string>

#include "graph/graph.hpp"

namespace gpunn::execution {

// "CONV2D", or "op 4711" for an id that the catalogue lacks.
std::string op_name(int32_t op);
// "MATMUL (f32[8, 4], f32[4, 2] -> f32[8, 2])"
std::string text_of(const graph::OpSignature& signature);
// "MATMUL 'fc1'"
std::string text_of(const graph::Node& node);

}  // namespace gpunn::execution
