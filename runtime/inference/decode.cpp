#include "inference/decode.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace gpunn::inference {

Decoded decode(const ModelInfo& info, std::span<const float> probabilities, int64_t top) {
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return probabilities[a] > probabilities[b]; });
  Decoded decoded;
  for (std::size_t k = 0; k < std::min(static_cast<std::size_t>(top), order.size()); ++k) {
    decoded.classes.push_back({.index = static_cast<int64_t>(order[k]),
                               .name = info.classes[order[k]],
                               .probability = probabilities[order[k]]});
  }
  return decoded;
}

}  // namespace gpunn::inference
