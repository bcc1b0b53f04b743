#include <gpunn/ops.h>

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

// First values as in PyTorch: normal, of a deviation of 1.
graph::ValueId embedding(const LayerContext& c) {
  const Shape x = c.input_shape();
  const int64_t width = c.arguments.integer("width");
  const graph::ValueId table = c.parameter({.name = "weight",
                                            .shape = {c.arguments.integer("count"), width},
                                            .init = InitKind::normal,
                                            .decayed = true,
                                            .deviation = 1});
  graph::Expressions e(c.graph, c.layer.name);
  const graph::ValueId integers = view(c, c.inputs[0], {element_count(x)});
  const graph::ValueId index = e.dtype(integers) == DType::i32 ? integers : e.converted(integers, DType::i32);
  Shape rows = x;
  rows.push_back(width);
  if (rows.size() > GPUNN_MAX_RANK) fail("expected at most 6 dimensions of a sample, found " + c.input_text(0));
  return view(c, e.op(GPUNN_OP_GATHER_ROWS, {table, index}), rows);
}

}  // namespace

LayerFunctions linear_layers() {
  return {
      {"linear", linear},
      {"embedding", embedding},
  };
}

}  // namespace gpunn::nn
