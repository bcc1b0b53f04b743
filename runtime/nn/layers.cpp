#include "nn/layers.hpp"

#include <limits>

#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

LayerFunctions all_layers() {
  LayerFunctions all;
#define GPUNN_LAYERS(name) all.merge(name##_layers());
#include "config/layers/families.inc"
#undef GPUNN_LAYERS
  return all;
}

}  // namespace

std::string LayerContext::input_text(std::size_t i) const { return to_string(input_shape(i)) + " of " + producers[i]; }

LayerFunction layer_function(std::string_view type) {
  static const LayerFunctions functions = all_layers();
  const auto found = functions.find(type);
  if (found == functions.end()) fail("there is no layer of type '" + std::string(type) + "'");
  return found->second;
}

void require_sane_size(const Shape& shape) {
  constexpr int64_t kMostElements = int64_t{1} << 36;
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (dim < 0 || dim > std::numeric_limits<int32_t>::max() || __builtin_mul_overflow(count, dim, &count) ||
        count > kMostElements) {
      fail("a tensor of " + to_string(shape) + " is larger than anything that could be trained");
    }
  }
}

}  // namespace gpunn::nn
