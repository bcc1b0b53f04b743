#include "inference/decode.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "tasks/task.hpp"

namespace gpunn::inference {

namespace {

bool tells_numbers(const ModelInfo& info) { return tasks::find(info.task).target_kind() == TargetKind::numbers; }

}  // namespace

std::array<const char*, 2> output_names(const ModelInfo& info) {
  if (tells_numbers(info)) return {"outputs", "values"};
  return {"logits", "probabilities"};
}

Decoded decode(const ModelInfo& info, std::span<const float> predictions, int64_t top) {
  Decoded decoded;
  if (tells_numbers(info)) {
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      decoded.values.push_back({.name = info.outputs[i], .value = static_cast<double>(predictions[i])});
    }
    return decoded;
  }
  std::vector<std::size_t> order(predictions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return predictions[a] > predictions[b]; });
  for (std::size_t k = 0; k < std::min(static_cast<std::size_t>(top), order.size()); ++k) {
    decoded.classes.push_back({.index = static_cast<int64_t>(order[k]),
                               .name = info.outputs[order[k]],
                               .probability = static_cast<double>(predictions[order[k]])});
  }
  return decoded;
}

}  // namespace gpunn::inference
