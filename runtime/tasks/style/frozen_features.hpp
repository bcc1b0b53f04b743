#pragma once

#include <gpunn/loss_config.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "nn/frozen/frozen_network.hpp"

namespace gpunn::tasks {

// A frozen network that compares images, where it does so, and the styles that images are to have.
struct FrozenFeatures {
  nn::FrozenNetwork network;
  std::vector<std::string> content, style;      // layers
  double content_weight = 1, style_weight = 1;  // what the network is known for
  std::vector<nn::Constant> styles = {};        // of each style layer f32[styles, C, C]: the Gram matrices
  std::vector<std::string> notes = {};          // what the user is to hear
};

// The name of a style layer's Gram matrices.
std::string style_constant(const std::string& layer);

// Whether a loss compares images by a frozen network.
bool compares_features(const LossConfig& loss);

// The losses of images f32[N, C, H, W] from 0 to 1, of one channel or three, f32[N]: as Perceptual and StyleLoss say.
graph::ValueId add_perceptual_loss(graph::Graph& g, const Perceptual& loss, const FrozenFeatures& frozen,
                                   graph::ValueId images, graph::ValueId targets);
// Row r has the style r modulo their count. Throws Error(usage) where N is above that count and no multiple of it.
graph::ValueId add_style_loss(graph::Graph& g, const StyleLoss& loss, const FrozenFeatures& frozen,
                              graph::ValueId images, graph::ValueId contents);

}  // namespace gpunn::tasks
