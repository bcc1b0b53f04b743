// How far a pixel of a result sees in the image that it is made of: what decides whether an image can go in parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "runs/trained_model.hpp"

namespace gpunn::inference {

struct Reach {
  int64_t pixels = 0;  // on each side, of the model's input
  int64_t step = 1;    // a part begins at multiples of it, so that strides fall on the same pixels
  bool operator==(const Reach&) const = default;
};

struct Sight {
  std::optional<Reach> reach;  // empty: the whole image
  std::string cause;           // the layer that sees the whole image, and its op
};

// Follows the image[1, C, H, W] through a graph to a result whose sides are `ratio` times as long. An op without a rule
// here counts as one that sees the whole image.
Sight sight_of(const graph::Graph& g, graph::ValueId image, graph::ValueId result, int64_t ratio);

// That of a model for images of any size. A layer that sees more of a larger image sees the whole image.
Sight sight_of(const TrainedModel& trained, int64_t channels, int64_t ratio);

}  // namespace gpunn::inference
