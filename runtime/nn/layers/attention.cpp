// What transformers are built of; tensors are named as torch.nn.MultiheadAttention names them.
#include <gpunn/ops.h>

#include <cmath>
#include <string>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::Expressions;
using graph::ValueId;

// Dimensions 1 and 2 of x change places.
ValueId swapped(const LayerContext& c, ValueId x) {
  const gpunn_transpose_attrs attrs{.struct_size = 0, .rank = 4, .permutation = {0, 2, 1, 3}};
  return c.graph.add1(GPUNN_OP_TRANSPOSE, c.layer.name, Attributes::of(attrs), {x});
}

float score_scale(int64_t head) { return static_cast<float>(1 / std::sqrt(static_cast<double>(head))); }

// q, k, v and the result are [samples, tokens, heads, head].
ValueId mixed_by_weights(const LayerContext& c, ValueId q, ValueId k, ValueId v) {
  const gpunn_attention_attrs attrs{.struct_size = 0, .scale = score_scale(c.graph.value(q).type.shape[3])};
  return c.graph.add(GPUNN_OP_ATTENTION, c.layer.name, Attributes::of(attrs), {q, k, v}).front();
}

// The same with weights left out. Those that are kept are a tensor: ATTENTION has no dropout.
ValueId mixed_by_dropped_weights(const LayerContext& c, ValueId q, ValueId k, ValueId v) {
  const Shape shape = c.graph.value(q).type.shape;
  const int64_t samples = shape[0], tokens = shape[1], heads = shape[2], head = shape[3];
  const auto by_head = [&](ValueId x) { return view(c, swapped(c, x), {samples * heads, tokens, head}); };
  Expressions e(c.graph, c.layer.name);
  const gpunn_matmul_attrs by_keys{.struct_size = 0, .transpose_a = 0, .transpose_b = 1};
  const ValueId scores =
      e.op(GPUNN_OP_BATCH_MATMUL, {e.scaled(by_head(q), score_scale(head)), by_head(k)}, Attributes::of(by_keys));
  const ValueId weights = e.op(GPUNN_OP_SOFTMAX, {view(c, scores, {samples * heads * tokens, tokens})});
  const ValueId kept = drop(c, weights, c.arguments.number("dropout"));
  const ValueId mixed = e.op(GPUNN_OP_BATCH_MATMUL, {view(c, kept, {samples * heads, tokens, tokens}), by_head(v)},
                             Attributes::of(gpunn_matmul_attrs{}));
  return swapped(c, view(c, mixed, {samples, heads, tokens, head}));
}

ValueId multi_head_attention(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_rank(x, 3, "[N, tokens, features]", "");
  const int64_t samples = x[0], tokens = x[1], features = x[2], heads = c.arguments.integer("heads");
  if (features % heads != 0) {
    fail("expected features in a multiple of heads (" + std::to_string(heads) + "), found an input of " + to_string(x));
  }
  const int64_t head = features / heads;
  const bool bias = c.arguments.boolean("bias");
  const auto add_bias = [&](ValueId y, ValueId b) { return c.graph.add1(GPUNN_OP_BIAS_ADD, c.layer.name, {}, {y, b}); };
  const auto bias_parameter = [&](const char* name, int64_t size) {
    return c.parameter({.name = name, .shape = {size}, .init = InitKind::zeros});
  };
  Expressions e(c.graph, c.layer.name);

  const ValueId rows = view(c, c.inputs[0], {samples * tokens, features});
  const ValueId in_weight = c.parameter({.name = "in_proj_weight",
                                         .shape = {3 * features, features},
                                         .init = InitKind::uniform,
                                         .decayed = true,
                                         .deviation = std::sqrt(2.0 / static_cast<double>(4 * features))});
  const ValueId in_bias = bias ? bias_parameter("in_proj_bias", 3 * features) : graph::kNoValue;
  // The queries, keys or values of each head. Slices of the weights are smaller than those of all projections at once.
  const auto projected = [&](int64_t part) {
    ValueId y = weighted_sums(c, rows, e.slice(in_weight, 0, part * features, features));
    if (bias) y = add_bias(y, e.slice(in_bias, 0, part * features, features));
    return view(c, y, {samples, tokens, heads, head});
  };
  const ValueId queries = projected(0), keys = projected(1), values = projected(2);
  const ValueId mixed = drops(c, c.arguments.number("dropout")) ? mixed_by_dropped_weights(c, queries, keys, values)
                                                                : mixed_by_weights(c, queries, keys, values);

  const ValueId out_weight = c.parameter({.name = "out_proj.weight",
                                          .shape = {features, features},
                                          .init = InitKind::kaiming_uniform,
                                          .fan_in = features,
                                          .decayed = true});
  ValueId y = weighted_sums(c, view(c, mixed, {samples * tokens, features}), out_weight);
  if (bias) y = add_bias(y, bias_parameter("out_proj.bias", features));
  return view(c, y, x);
}

ValueId class_token(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_rank(x, 3, "[N, tokens, features]", "");
  Expressions e(c.graph, c.layer.name);
  const ValueId token = c.parameter({.name = "weight", .shape = {1, 1, x[2]}, .init = InitKind::zeros});
  return e.op(GPUNN_OP_CONCAT, {e.expand(token, {x[0], 1, x[2]}), c.inputs[0]},
              Attributes::of(gpunn_concat_attrs{.struct_size = 0, .axis = 1}));
}

ValueId position_embedding(const LayerContext& c) {
  Shape one = c.input_shape();
  one[0] = 1;
  // The deviation is that of Dosovitskiy et al. (2021).
  const ValueId weight = c.parameter({.name = "weight", .shape = one, .init = InitKind::normal, .deviation = 0.02});
  return Expressions(c.graph, c.layer.name).add(c.inputs[0], weight);
}

}  // namespace

LayerFunctions attention_layers() {
  return {
      {"multi_head_attention", multi_head_attention},
      {"class_token", class_token},
      {"position_embedding", position_embedding},
  };
}

}  // namespace gpunn::nn
