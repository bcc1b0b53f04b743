#include "config/layers/families.hpp"

namespace gpunn::config {

std::vector<LayerType> merge_layers() {
  constexpr int kMostParts = 16;
  return {
      {"add", "The sum of two layers of equal shape: `from: [a, b]`.", 2, {}},
      {"multiply",
       "The product of two layers of equal shape, or of [C, ...] and a number for each channel, [C] or [C, 1, ...]: "
       "`from: [a, b]`.",
       2,
       {}},
      {"concat",
       "The channels, or features, of two to 16 layers one behind the other: `from: [a, b, c]`.",
       2,
       {},
       nullptr,
       kMostParts},
  };
}

}  // namespace gpunn::config
