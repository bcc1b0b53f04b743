#pragma once

#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace gpunn::inference {

// A batch norm whose work the layer in front of it does. The values are the graph's.
struct FoldedNorm {
  graph::ValueId weight = graph::kNoValue;  // of the layer, [channels, ...]
  graph::ValueId bias = graph::kNoValue;    // of the layer; kNoValue: it has none
  graph::ValueId gamma = graph::kNoValue, beta = graph::kNoValue, mean = graph::kNoValue, variance = graph::kNoValue;
  double epsilon = 0;
};

// A batch norm of given statistics behind a convolution or a dense layer is linear as they are:
//   gamma rstd (W x + b - mean) + beta = (gamma rstd W) x + (beta + gamma rstd (b - mean)),
// so that other filters and a bias do for both (Jacob et al., 2018, section 3.2). Takes every such norm out of the
// graph where nothing else reads what lies between, nor the parameters; its beta becomes the bias.
std::vector<FoldedNorm> fold_batch_norms(graph::Graph& g);

// Makes those filters and biases, in the flat arrays of the model's parameters and buffers.
void fold_weights(const graph::Graph& g, std::span<const FoldedNorm> norms, std::span<float> parameters,
                  std::span<const float> buffers);

}  // namespace gpunn::inference
