#pragma once

#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace gpunn::graph {

// Shapes of a loss that compares each element of x with one of a target: x[N,...], target[N,...] -> loss[N].
std::vector<TensorType> infer_row_loss(const Attributes& attrs, std::span<const TensorType> in);
// dloss[N], x, target -> dx
std::vector<TensorType> infer_row_loss_backward(const Attributes& attrs, std::span<const TensorType> in);

}  // namespace gpunn::graph
