#include "nn/layers/parts.hpp"

#include <gpunn/error.hpp>
#include <gpunn/op_signature.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

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

std::size_t require_space(const Shape& shape) {
  if (shape.size() < 3 || shape.size() > 5) {
    fail(
        "expected an input of [N, channels, length], [N, channels, rows, columns] or [N, channels, planes, rows, "
        "columns], found " +
        to_string(shape));
  }
  return shape.size() - 2;
}

std::string by(const Sizes& sizes) {
  std::string result;
  for (const int64_t size : sizes) result += (result.empty() ? "" : "x") + std::to_string(size);
  return result;
}

std::string by_margins(const Margins& margins) {
  if (!is_symmetric(margins)) return to_string(margins);
  Sizes sides;
  for (std::size_t i = 0; i < margins.size(); i += 2) sides.push_back(margins[i]);
  return by(sides);
}

Sizes slide(const Shape& x, const Sizes& reach, const Sizes& stride, const Margins& padding, const char* what) {
  Sizes size;
  for (std::size_t i = 0; i < reach.size(); ++i) {
    const int64_t room = x[i + 2] + padding[2 * i] + padding[2 * i + 1];
    if (reach[i] > room) {
      fail(std::string(what) + " of " + by(reach) + " does not fit in an input of " + to_string(x) + " with padding " +
           by_margins(padding));
    }
    size.push_back((room - reach[i]) / stride[i] + 1);
  }
  return size;
}

void require_broadcast(const LayerContext& c) {
  for (std::size_t i = 1; i < c.inputs.size(); ++i) {
    const Shape &a = c.input_shape(0), &b = c.input_shape(i);
    const bool fits = a.size() == b.size() &&
                      std::ranges::equal(a, b, [](int64_t x, int64_t y) { return x == y || x == 1 || y == 1; });
    if (!fits) {
      fail("expected inputs of one shape, but for sizes of 1, found " + c.input_text(0) + " and " + c.input_text(i));
    }
  }
}

ValueId permuted(const LayerContext& c, ValueId x, const std::vector<int32_t>& order) {
  gpunn_transpose_attrs attrs{};
  attrs.rank = static_cast<int32_t>(order.size());
  std::ranges::copy(order, attrs.permutation);
  return c.graph.add1(GPUNN_OP_TRANSPOSE, c.layer.name, Attributes::of(attrs), {x});
}

bool is_symmetric(const Margins& margins) {
  for (std::size_t i = 0; i < margins.size(); i += 2) {
    if (margins[i] != margins[i + 1]) return false;
  }
  return true;
}

ValueId padded(const LayerContext& c, ValueId x, const Margins& margins) {
  if (std::ranges::count(margins, 0) == std::ssize(margins)) return x;
  Shape shape = c.graph.value(x).type.shape;
  gpunn_pad_attrs attrs{};
  attrs.rank = static_cast<int32_t>(shape.size());
  for (std::size_t i = 0; i < margins.size(); ++i) {
    (i % 2 == 0 ? attrs.before : attrs.after)[2 + i / 2] = margins[i];
    shape[2 + i / 2] += margins[i];
  }
  require_sane_size(shape);
  return c.graph.add1(GPUNN_OP_PAD, c.layer.name, Attributes::of(attrs), {x});
}

ValueId joined(graph::Expressions& e, std::vector<ValueId> parts, std::size_t dimension) {
  const gpunn_concat_attrs attrs{.struct_size = 0, .axis = static_cast<int32_t>(dimension)};
  while (parts.size() > 1) {
    std::vector<ValueId> longer;
    for (std::size_t i = 0; i < parts.size(); i += ops::kMostParts) {
      const std::size_t end = std::min(parts.size(), i + ops::kMostParts);
      const std::vector<ValueId> some(parts.begin() + static_cast<std::ptrdiff_t>(i),
                                      parts.begin() + static_cast<std::ptrdiff_t>(end));
      longer.push_back(some.size() == 1 ? some.front() : e.op(GPUNN_OP_CONCAT, some, Attributes::of(attrs)));
    }
    parts = std::move(longer);
  }
  return parts.front();
}

std::vector<ValueId> taps(const LayerContext& c, ValueId x, std::size_t dimension, int64_t window, int64_t dilation,
                          int64_t stride, int64_t count) {
  graph::Expressions e(c.graph, c.layer.name);
  // The dimension as steps of the stride and the elements of a step.
  Shape apart = e.shape(x);
  const int64_t last = (window - 1) * dilation, steps = last / stride + count;
  const int64_t missing = steps * stride - apart[dimension];
  if (missing > 0) {
    gpunn_pad_attrs pad{};
    pad.rank = static_cast<int32_t>(apart.size());
    pad.after[dimension] = missing;
    x = e.op(GPUNN_OP_PAD, {x}, Attributes::of(pad));
  } else if (missing < 0) {
    x = e.slice(x, dimension, 0, steps * stride);
  }
  Shape whole = apart;
  whole[dimension] = count;
  apart[dimension] = steps;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(dimension) + 1, stride);
  x = e.view(x, apart);
  std::vector<ValueId> result;
  for (int64_t start = 0; start <= last; start += dilation) {
    gpunn_slice_attrs box{};
    box.rank = static_cast<int32_t>(apart.size());
    std::ranges::copy(apart, box.size);
    box.start[dimension] = start / stride;
    box.size[dimension] = count;
    box.start[dimension + 1] = start % stride;
    box.size[dimension + 1] = 1;
    const bool is_all = steps == count && stride == 1;
    result.push_back(e.view(is_all ? x : e.op(GPUNN_OP_SLICE, {x}, Attributes::of(box)), whole));
  }
  return result;
}

Sizes of_image(const Sizes& sizes, const ImageDimensions& dimensions, int64_t otherwise) {
  Sizes result;
  for (const auto& dimension : dimensions) result.push_back(dimension ? sizes[*dimension] : otherwise);
  return result;
}

Margins margins_of_image(const Margins& margins, const ImageDimensions& dimensions) {
  Margins result;
  for (const auto& dimension : dimensions) {
    for (std::size_t side = 0; side < 2; ++side) result.push_back(dimension ? margins[2 * *dimension + side] : 0);
  }
  return result;
}

ValueId over_images(const LayerContext& c, ValueId x,
                    const std::function<ValueId(ValueId, const ImageDimensions&)>& step) {
  graph::Expressions e(c.graph, c.layer.name);
  const Shape s = e.shape(x);
  switch (s.size()) {
    case 3: {
      const ValueId y = step(e.view(x, {s[0], s[1], 1, s[2]}), {std::nullopt, 0});
      return e.view(y, {s[0], s[1], e.shape(y)[3]});
    }
    case 4:
      return step(x, {0, 1});
    default: {
      const ValueId flat = step(e.view(x, {s[0], s[1] * s[2], s[3], s[4]}), {1, 2});
      const int64_t rows = e.shape(flat)[2], columns = e.shape(flat)[3];
      const ValueId y = step(e.view(flat, {s[0], s[1], s[2], rows * columns}), {0, std::nullopt});
      return e.view(y, {s[0], s[1], e.shape(y)[2], rows, columns});
    }
  }
}

void copy(const Sizes& from, int32_t (&to)[2]) {
  to[0] = static_cast<int32_t>(from[0]);
  to[1] = static_cast<int32_t>(from[1]);
}

ValueId view(const LayerContext& c, ValueId x, const Shape& shape) {
  return graph::Expressions(c.graph, c.layer.name).view(x, shape);
}

ValueId places_along(graph::Expressions& e, std::size_t rank, std::size_t dimension, int64_t size) {
  const gpunn_grid_points_attrs attrs{.struct_size = 0, .rows = static_cast<int32_t>(size), .columns = 1, .stride = 1};
  const ValueId points = e.op(GPUNN_OP_GRID_POINTS, {}, Attributes::of(attrs));
  Shape shape(rank, 1);
  shape[dimension] = size;
  return e.view(e.sub(e.slice(points, 1, 1, 1), e.constant(0.5)), shape);
}

ValueId enlarge(const LayerContext& c, ValueId x, const Sizes& factor, int32_t mode) {
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
