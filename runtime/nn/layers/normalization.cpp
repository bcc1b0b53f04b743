#include <gpunn/ops.h>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/global_batch_norm.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::ValueId;

// In training by the batch, whose statistics the running ones follow; otherwise, and where they are fixed, by those.
ValueId batch_norm(const LayerContext& c) {
  const Shape channels{c.input_shape().at(1)};
  const ValueId gamma = c.parameter({.name = "weight", .shape = channels, .init = InitKind::ones});
  const ValueId beta = c.parameter({.name = "bias", .shape = channels, .init = InitKind::zeros});
  const ValueId mean = c.buffer({.name = "running_mean", .shape = channels, .init = InitKind::zeros});
  const ValueId variance = c.buffer({.name = "running_var", .shape = channels, .init = InitKind::ones});
  const auto epsilon = static_cast<float>(c.arguments.number("epsilon"));
  const auto momentum = static_cast<float>(c.arguments.number("momentum"));
  const Attributes attrs =
      Attributes::of(gpunn_batch_norm_attrs{.struct_size = 0, .epsilon = epsilon, .momentum = momentum});
  std::vector<ValueId> inputs{c.inputs[0], gamma, beta, mean, variance};
  if (!c.options.training || c.options.fixed_buffers.contains(c.layer.name)) {
    return c.graph.add1(GPUNN_OP_BATCH_NORM_INFERENCE, c.layer.name, attrs, std::move(inputs));
  }
  if (c.options.world > 1)
    return add_global_batch_norm(c, {c.inputs[0], gamma, beta, mean, variance}, epsilon, momentum);
  if (c.options.count != graph::kNoValue) inputs.push_back(c.options.count);
  return c.graph.add(GPUNN_OP_BATCH_NORM, c.layer.name, attrs, std::move(inputs)).front();
}

Attributes with_epsilon(const LayerContext& c) {
  return Attributes::of(
      gpunn_layer_norm_attrs{.struct_size = 0, .epsilon = static_cast<float>(c.arguments.number("epsilon"))});
}

// Over the last of a sample's dimensions, or all of them, which the op sees as one.
ValueId layer_norm(const LayerContext& c) {
  const Shape x = c.input_shape();
  const int64_t last = c.arguments.integer("dimensions");
  if (last >= std::ssize(x)) {
    fail("a sample has " + std::to_string(x.size() - 1) + " dimensions, not " + std::to_string(last));
  }
  const Shape together(last == 0 ? x.begin() + 1 : x.end() - last, x.end());
  const int64_t elements = element_count(together);
  const ValueId gamma = c.parameter({.name = "weight", .shape = together, .init = InitKind::ones});
  const ValueId beta = c.parameter({.name = "bias", .shape = together, .init = InitKind::zeros});
  const ValueId y = c.graph
                        .add(GPUNN_OP_LAYER_NORM, c.layer.name, with_epsilon(c),
                             {view(c, c.inputs[0], {element_count(x) / elements, elements}), view(c, gamma, {elements}),
                              view(c, beta, {elements})})
                        .front();
  return view(c, y, x);
}

// The weight or the bias of a layer with one for each channel; a constant where the layer has none.
ValueId by_channel(const LayerContext& c, const char* name, InitKind init) {
  const Shape channels{c.input_shape().at(1)};
  if (c.arguments.boolean("affine")) return c.parameter({.name = name, .shape = channels, .init = init});
  return graph::Expressions(c.graph, c.layer.name).constant(init == InitKind::ones ? 1 : 0, channels);
}

ValueId instance_norm(const LayerContext& c) {
  const ValueId gamma = by_channel(c, "weight", InitKind::ones), beta = by_channel(c, "bias", InitKind::zeros);
  return c.graph.add(GPUNN_OP_INSTANCE_NORM, c.layer.name, with_epsilon(c), {c.inputs[0], gamma, beta}).front();
}

ValueId l2_norm(const LayerContext& c) {
  constexpr double kLeastSquare = 1e-10;  // a pixel of zeros stays one
  const Shape x = c.input_shape();
  require_image(x);
  const ValueId weight = c.parameter({.name = "weight", .shape = {x[1]}, .init = InitKind::ones});
  graph::Expressions e(c.graph, c.layer.name);
  const ValueId square = e.sum(e.mul(c.inputs[0], c.inputs[0]), 2U);
  const ValueId unit = e.mul(c.inputs[0], e.rsqrt(e.add(square, e.constant(kLeastSquare))));
  return e.mul(unit, e.scaled(view(c, weight, {x[1], 1, 1}), c.arguments.number("scale")));
}

// Of the rows of a table f32[styles, C] the one of each row of a batch, f32[rows, C, 1, ...].
ValueId of_rows(graph::Expressions& e, ValueId table, const Shape& x) {
  const int64_t styles = e.shape(table)[0], channels = x[1];
  Shape to(x.size(), 1);
  to[1] = channels;
  to[0] = x[0];
  if (x[0] < styles) return e.view(e.slice(table, 0, 0, x[0]), to);
  if (x[0] % styles != 0) {
    fail("a batch of " + std::to_string(x[0]) + " rows is not a multiple of the " + std::to_string(styles) + " styles");
  }
  const ValueId repeated = e.expand(e.view(table, {1, styles * channels}), {x[0] / styles, styles * channels});
  return e.view(repeated, to);
}

ValueId conditional_instance_norm(const LayerContext& c) {
  const Shape x = c.input_shape();
  const int64_t style = c.arguments.integer("style");
  const Shape table{c.arguments.integer("styles"), x.at(1)};
  graph::Expressions e(c.graph, c.layer.name);
  const ValueId weight = c.parameter({.name = "weight", .shape = table, .init = InitKind::ones});
  const ValueId bias = c.parameter({.name = "bias", .shape = table, .init = InitKind::zeros});
  const auto norm = [&](ValueId gamma, ValueId beta) {
    return c.graph.add(GPUNN_OP_INSTANCE_NORM, c.layer.name, with_epsilon(c), {c.inputs[0], gamma, beta}).front();
  };
  if (style >= 0 || table[0] == 1) {  // all rows have the same numbers, which the op takes along
    const auto same = [&](ValueId numbers) {
      return e.view(style >= 0 ? e.slice(numbers, 0, style, 1) : numbers, {x[1]});
    };
    return norm(same(weight), same(bias));
  }
  const ValueId normal = norm(e.constant(1, {x[1]}), e.constant(0, {x[1]}));
  return e.add(e.mul(normal, of_rows(e, weight, x)), of_rows(e, bias, x));
}

// LAYER_NORM over each group of a sample's channels, then what each channel is multiplied with and what is added. (Wu
// and He, 2018.)
ValueId group_norm(const LayerContext& c) {
  const Shape x = c.input_shape();
  const int64_t groups = c.arguments.integer("groups");
  require_channels_in_multiple(x, groups, "groups");
  if (groups == x[1]) return instance_norm(c);
  const int64_t size = element_count(x) / (x[0] * groups);
  graph::Expressions e(c.graph, c.layer.name);
  const ValueId normal =
      c.graph
          .add(GPUNN_OP_LAYER_NORM, c.layer.name, with_epsilon(c),
               {view(c, c.inputs[0], {x[0] * groups, size}), e.constant(1, {size}), e.constant(0, {size})})
          .front();
  const ValueId y = view(c, normal, x);
  if (!c.arguments.boolean("affine")) return y;
  const ValueId gamma = by_channel(c, "weight", InitKind::ones), beta = by_channel(c, "bias", InitKind::zeros);
  Shape with_rest(x.size() - 1, 1);
  with_rest[0] = x[1];
  const ValueId scaled = c.graph.add1(GPUNN_OP_MUL, c.layer.name, {}, {y, view(c, gamma, with_rest)});
  return c.graph.add1(GPUNN_OP_BIAS_ADD, c.layer.name, {}, {scaled, beta});
}

ValueId local_response_norm(const LayerContext& c) {
  const auto number = [&c](const char* key) { return static_cast<float>(c.arguments.number(key)); };
  const gpunn_local_response_norm_attrs attrs{.struct_size = 0,
                                              .size = static_cast<int32_t>(c.arguments.integer("size")),
                                              .alpha = number("alpha"),
                                              .beta = number("beta"),
                                              .k = number("k")};
  return c.graph.add1(GPUNN_OP_LOCAL_RESPONSE_NORM, c.layer.name, Attributes::of(attrs), {c.inputs[0]});
}

}  // namespace

LayerFunctions normalization_layers() {
  return {
      {"batch_norm", batch_norm},
      {"layer_norm", layer_norm},
      {"group_norm", group_norm},
      {"instance_norm", instance_norm},
      {"l2_norm", l2_norm},
      {"conditional_instance_norm", conditional_instance_norm},
      {"local_response_norm", local_response_norm},
  };
}

}  // namespace gpunn::nn
