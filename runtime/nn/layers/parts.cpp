#include "nn/layers/parts.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <cmath>
#include <string>
#include <utility>

#include "graph/expressions.hpp"

namespace gpunn::nn {

using graph::Attributes;
using graph::ValueId;

void fail(const std::string& message) { throw Error(message, ExitCode::usage); }

void require_rank(const Shape& shape, std::size_t rank, const char* expected, const char* hint) {
  if (shape.size() != rank)
    fail(std::string("expected an input of ") + expected + ", found " + to_string(shape) + hint);
}

void require_image(const Shape& shape) { require_rank(shape, 4, "[N, channels, rows, columns]", ""); }

void require_channels_in_multiple(const Shape& x, int64_t of, const char* what) {
  if (x[1] % of != 0) {
    fail(std::string("expected channels in a multiple of ") + what + " (" + std::to_string(of) +
         "), found an input of " + to_string(x));
  }
}

std::string by(const Pair& pair) { return std::to_string(pair[0]) + "x" + std::to_string(pair[1]); }

std::string by(const Margins& margins) {
  if (is_symmetric(margins)) return by(Pair{margins[0], margins[2]});
  return to_string(Shape(margins.begin(), margins.end()));
}

Pair slide(const Shape& x, const Pair& reach, const Pair& stride, const Margins& padding, const char* what) {
  Pair size{};
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t room = x[i + 2] + padding[2 * i] + padding[2 * i + 1];
    if (reach[i] > room) {
      fail(std::string(what) + " of " + by(reach) + " does not fit in an input of " + to_string(x) + " with padding " +
           by(padding));
    }
    size[i] = (room - reach[i]) / stride[i] + 1;
  }
  return size;
}

bool is_symmetric(const Margins& margins) { return margins[0] == margins[1] && margins[2] == margins[3]; }

ValueId padded(const LayerContext& c, ValueId x, const Margins& margins) {
  const auto [top, bottom, left, right] = margins;
  const Shape& shape = c.graph.value(x).type.shape;
  require_sane_size({shape[0], shape[1], shape[2] + top + bottom, shape[3] + left + right});
  gpunn_pad_attrs attrs{};
  attrs.rank = 4;
  attrs.before[2] = top;
  attrs.after[2] = bottom;
  attrs.before[3] = left;
  attrs.after[3] = right;
  return c.graph.add1(GPUNN_OP_PAD, c.layer.name, Attributes::of(attrs), {x});
}

void copy(const Pair& from, int32_t (&to)[2]) {
  to[0] = static_cast<int32_t>(from[0]);
  to[1] = static_cast<int32_t>(from[1]);
}

ValueId view(const LayerContext& c, ValueId x, const Shape& shape) {
  return graph::Expressions(c.graph, c.layer.name).view(x, shape);
}

ValueId enlarge(const LayerContext& c, ValueId x, const Pair& factor, int32_t mode) {
  const Shape shape = c.graph.value(x).type.shape;
  require_sane_size({shape[0], shape[1], shape[2] * factor[0], shape[3] * factor[1]});
  gpunn_upsample2d_attrs attrs{};
  copy(factor, attrs.factor);
  attrs.mode = mode;
  return c.graph.add1(GPUNN_OP_UPSAMPLE2D, c.layer.name, Attributes::of(attrs), {x});
}

bool drops(const LayerContext& c, double p) { return c.options.training && static_cast<float>(p) != 0; }

ValueId drop(const LayerContext& c, ValueId x, double p) {
  constexpr uint64_t kDropoutStreams = uint64_t{1} << 32;  // stream of the layer with index 0
  const auto share = static_cast<float>(p);
  if (!drops(c, p)) return x;
  if (c.options.step == graph::kNoValue) fail("dropout needs the step counter in training");
  if (share >= 1) fail("a share that is dropped must be below 1 in single precision");
  const gpunn_dropout_attrs attrs{
      .struct_size = 0, .p = share, .seed = c.options.seed, .stream = kDropoutStreams + c.index};
  return c.graph.add1(GPUNN_OP_DROPOUT, c.layer.name, Attributes::of(attrs), {x, c.options.step});
}

ValueId weighted_sums(const LayerContext& c, ValueId x, ValueId w) {
  const gpunn_matmul_attrs attrs{.struct_size = 0, .transpose_a = 0, .transpose_b = 1};
  return c.graph.add1(GPUNN_OP_MATMUL, c.layer.name, Attributes::of(attrs), {x, w});
}

ValueId activate(const LayerContext& c, std::string_view activation, ValueId x) {
  const auto apply = [&](int32_t op, Attributes attrs = {}) {
    return c.graph.add1(op, c.layer.name, std::move(attrs), {x});
  };
  if (activation == "none") return x;
  if (activation == "relu") return apply(GPUNN_OP_RELU);
  if (activation == "relu6") {
    return apply(GPUNN_OP_CLAMP, Attributes::of(gpunn_clamp_attrs{.struct_size = 0, .low = 0, .high = 6}));
  }
  if (activation == "sigmoid") return apply(GPUNN_OP_SIGMOID);
  if (activation == "tanh") return apply(GPUNN_OP_TANH);
  if (activation == "silu") return apply(GPUNN_OP_SILU);
  if (activation == "gelu") {
    return apply(GPUNN_OP_GELU, Attributes::of(gpunn_gelu_attrs{.struct_size = 0, .tanh = 0}));
  }
  fail("there is no activation '" + std::string(activation) + "'");
}

Parameter weight(const LayerContext& c, Shape shape, int64_t fan_in, int64_t fan_out) {
  Parameter parameter{.name = "weight",
                      .shape = std::move(shape),
                      .init = InitKind::kaiming_uniform,
                      .fan_in = fan_in,
                      .decayed = true};
  const std::string init = c.arguments.choice("init");
  if (init == "default") return parameter;
  // He et al. (2015) for what a ReLU follows, in their backward form; Glorot and Bengio (2010).
  const double variance =
      init.starts_with("kaiming") ? 2.0 / static_cast<double>(fan_out) : 2.0 / static_cast<double>(fan_in + fan_out);
  parameter.init = init.ends_with("normal") ? InitKind::normal : InitKind::uniform;
  parameter.deviation = std::sqrt(variance);
  return parameter;
}

ValueId weight_tensor(const LayerContext& c, const Parameter& weight) {
  const ValueId w = c.parameter(weight);
  if (!c.arguments.boolean("int8_weight")) return w;
  constexpr double kMost = 127, kDeviations = 4;
  const double reach = weight.init == InitKind::kaiming_uniform ? 1 / std::sqrt(static_cast<double>(weight.fan_in))
                                                                : kDeviations * weight.deviation;
  const ValueId steps = c.buffer(
      {.name = "weight_scale", .shape = {weight.shape[0]}, .init = InitKind::constant, .deviation = reach / kMost});
  Shape by_output(weight.shape.size(), 1);
  by_output[0] = weight.shape[0];
  graph::Expressions e(c.graph, c.layer.name);
  const ValueId step = e.view(steps, by_output);
  const gpunn_quantize_attrs whole{.struct_size = 0, .scale = 1, .zero_point = 128};
  return e.mul(e.op(GPUNN_OP_FAKE_QUANTIZE, {e.div(w, step)}, Attributes::of(whole)), step);
}

ValueId add_bias_and_activation(const LayerContext& c, ValueId y, int64_t channels, int64_t fan_in) {
  if (c.arguments.boolean("bias")) {
    const bool usual = c.arguments.choice("init") == "default";
    const ValueId bias = c.parameter({.name = "bias",
                                      .shape = {channels},
                                      .init = usual ? InitKind::bias_uniform : InitKind::zeros,
                                      .fan_in = fan_in,
                                      .decayed = false});
    y = c.graph.add1(GPUNN_OP_BIAS_ADD, c.layer.name, {}, {y, bias});
  }
  return activate(c, c.arguments.choice("activation"), y);
}

}  // namespace gpunn::nn
