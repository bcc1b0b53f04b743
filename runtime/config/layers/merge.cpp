#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

std::vector<LayerType> merge_layers() {
  constexpr int kMostParts = 16;
  return {
      {"add", "The sum of two layers of the same shape; sizes of 1 are repeated: `from: [a, b]`.", 2, {}},
      {"subtract", "The first of two layers minus the second, as in `add`.", 2, {}},
      {"multiply",
       "The product of two layers, as in `add`, or of [C, ...] and a number for each channel, [C]: `from: [a, b]`.",
       2,
       {}},
      {"divide", "The first of two layers over the second, as in `add`.", 2, {}},
      {"maximum", "The larger value of two layers, as in `add`.", 2, {}},
      {"minimum", "The smaller value of two layers, as in `add`.", 2, {}},
      {"matmul",
       "The matrix product of two layers, [..., M, K] and [..., K, L]; dimensions in front as in `add`.",
       2,
       {}},
      {"concat",
       "The channels, or features, or another dimension of two to 16 layers, concatenated: `from: [a, b, c]`.",
       2,
       {{"dimension",
         LayerValue::integer,
         "0",
         between(0, kMostDimensions - 1),
         {},
         "The dimension of a sample that grows, counted from 0."}},
       nullptr,
       kMostParts},
  };
}

}  // namespace gpunn::config
