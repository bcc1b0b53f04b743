#pragma once

#include <gpunn/model_spec.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace gpunn::nn {

// A tensor that a program reads and never changes, f32.
struct Constant {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

// Has the nodes from `first` on compute in another precision; the values `results` are read next, in f32.
using PrecisionPass = std::function<void(graph::Graph& graph, std::size_t first, std::vector<graph::ValueId>& results)>;

// A network of convolutions inside a program that trains something else: an image, or another network. Its weights are
// constants, and losses compare what its layers give for two images.
struct FrozenNetwork {
  std::string name;
  ModelSpec model;                  // up to the last layer that is used
  std::vector<Constant> constants;  // how it sees colours, then the model's tensors
  std::ptrdiff_t parameters = 0;    // of these tensors; the others are buffers
  PrecisionPass precision = {};     // empty: f32
};

// The network's input for an image from 0 to 1: channel c is scale[c] * x + shift[c].
struct SeenColours {
  std::array<float, 3> scale, shift;
};

// The names and shapes of the model's parameters, then of its buffers, for images of 3 channels; without values.
std::vector<Constant> frozen_tensors(const std::string& network, const ModelSpec& model);
// A network with values for these.
FrozenNetwork frozen_network(std::string name, ModelSpec model, const SeenColours& seen, std::vector<Constant> tensors);

// A frozen network in a graph, which may look at several images.
class FrozenLayers {
 public:
  // Adds the constants to the graph as data, to be filled with their values.
  FrozenLayers(graph::Graph& graph, const FrozenNetwork& network);

  // The layers' outputs, by name, for images f32[N, 3, H, W] from 0 to 1, up to the last of `wanted`. Throws
  // ConfigError, which names the layer, if an image is too small.
  std::map<std::string, graph::ValueId> look_at(graph::ValueId images, const std::vector<std::string>& wanted);

 private:
  graph::Graph& graph_;
  const FrozenNetwork& network_;
  std::vector<graph::ValueId> constants_;
};

// Rows and columns of the image that a value of the layer depends on.
int64_t receptive_field(const ModelSpec& model, const std::string& layer);

// The model without the layers after the last of `used`. Throws Error(usage), with the nearest name, if there is no
// such layer.
ModelSpec model_up_to(ModelSpec model, const std::vector<std::string>& used);

}  // namespace gpunn::nn
