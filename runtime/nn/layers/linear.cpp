#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

// Of each sample, or of each token of a sample.
graph::ValueId linear(const LayerContext& c) {
  Shape x = c.input_shape();
  if (x.size() != 3) require_rank(x, 2, "[N, features] or [N, tokens, features]", "; put a flatten in front");
  const int64_t units = c.arguments.integer("units"), features = x.back();
  const graph::ValueId w = weight_tensor(c, weight(c, {units, features}, features, units));
  const graph::ValueId rows = view(c, c.inputs[0], {element_count(x) / features, features});
  const graph::ValueId y = add_bias_and_activation(c, weighted_sums(c, rows, w), units, features);
  x.back() = units;
  return view(c, y, x);
}

}  // namespace

LayerFunctions linear_layers() {
  return {
      {"linear", linear},
  };
}

}  // namespace gpunn::nn
