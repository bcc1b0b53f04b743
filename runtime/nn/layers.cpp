#include "nn/layers.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <array>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::ValueId;
using Pair = std::array<int64_t, 2>;

constexpr uint64_t kDropoutStreams = uint64_t{1} << 32;  // stream of the layer with index 0

[[noreturn]] void fail(const std::string& message) { throw Error(message, ExitCode::usage); }

void require_rank(const Shape& shape, std::size_t rank, const char* expected, const char* hint) {
  if (shape.size() != rank)
    fail(std::string("expected an input of ") + expected + ", found " + to_string(shape) + hint);
}

void require_image(const Shape& shape) { require_rank(shape, 4, "[N, channels, rows, columns]", ""); }

std::string by(const Pair& pair) { return std::to_string(pair[0]) + "x" + std::to_string(pair[1]); }

// Rows and columns of what a sliding window gives.
Pair slide(const Shape& x, const Pair& reach, const Pair& stride, const Pair& pad, const char* what) {
  Pair size{};
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t room = x[i + 2] + 2 * pad[i];
    if (reach[i] > room) {
      fail(std::string(what) + " of " + by(reach) + " does not fit in an input of " + to_string(x) + " with padding " +
           by(pad));
    }
    size[i] = (room - reach[i]) / stride[i] + 1;
  }
  return size;
}

void copy(const Pair& from, int32_t (&to)[2]) {
  to[0] = static_cast<int32_t>(from[0]);
  to[1] = static_cast<int32_t>(from[1]);
}

ValueId activate(const LayerContext& c, std::string_view activation, ValueId x) {
  const auto apply = [&](int32_t op, Attributes attrs = {}) {
    return c.graph.add1(op, c.layer.name, std::move(attrs), {x});
  };
  if (activation == "none") return x;
  if (activation == "relu") return apply(GPUNN_OP_RELU);
  if (activation == "sigmoid") return apply(GPUNN_OP_SIGMOID);
  if (activation == "tanh") return apply(GPUNN_OP_TANH);
  if (activation == "silu") return apply(GPUNN_OP_SILU);
  if (activation == "gelu") {
    return apply(GPUNN_OP_GELU, Attributes::of(gpunn_gelu_attrs{.struct_size = 0, .tanh = 0}));
  }
  fail("there is no activation '" + std::string(activation) + "'");
}

// A layer that is the activation of its own name.
ValueId activation(const LayerContext& c) { return activate(c, c.layer.type, c.inputs[0]); }

ValueId leaky_relu(const LayerContext& c) {
  const gpunn_leaky_relu_attrs attrs{.struct_size = 0, .slope = static_cast<float>(c.arguments.number("slope"))};
  return c.graph.add1(GPUNN_OP_LEAKY_RELU, c.layer.name, Attributes::of(attrs), {c.inputs[0]});
}

ValueId gelu(const LayerContext& c) {
  const gpunn_gelu_attrs attrs{.struct_size = 0, .tanh = c.arguments.choice("approximate") == "tanh" ? 1 : 0};
  return c.graph.add1(GPUNN_OP_GELU, c.layer.name, Attributes::of(attrs), {c.inputs[0]});
}

// What conv2d and linear end in.
ValueId add_bias_and_activation(const LayerContext& c, ValueId y, int64_t channels, int64_t fan_in) {
  if (c.arguments.boolean("bias")) {
    const ValueId bias = c.parameter(
        {.name = "bias", .shape = {channels}, .init = InitKind::bias_uniform, .fan_in = fan_in, .decayed = false});
    y = c.graph.add1(GPUNN_OP_BIAS_ADD, c.layer.name, {}, {y, bias});
  }
  return activate(c, c.arguments.choice("activation"), y);
}

ValueId conv2d(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_image(x);
  const int64_t filters = c.arguments.integer("filters"), groups = c.arguments.integer("groups");
  if (x[1] % groups != 0) {
    fail("expected channels in a multiple of groups (" + std::to_string(groups) + "), found an input of " +
         to_string(x));
  }
  const Pair kernel = c.arguments.pair("kernel"), dilation = c.arguments.pair("dilation");
  const Pair reach = {dilation[0] * (kernel[0] - 1) + 1, dilation[1] * (kernel[1] - 1) + 1};
  const Pair pad = c.arguments.is_same("padding") ? Pair{reach[0] / 2, reach[1] / 2} : c.arguments.pair("padding");
  const Pair stride = c.arguments.pair("stride");
  const Pair size = slide(x, reach, stride, pad, "a kernel");
  require_sane_size({filters, size[0], size[1]});

  const int64_t fan_in = x[1] / groups * kernel[0] * kernel[1];
  const ValueId weight = c.parameter({.name = "weight",
                                      .shape = {filters, x[1] / groups, kernel[0], kernel[1]},
                                      .init = InitKind::kaiming_uniform,
                                      .fan_in = fan_in,
                                      .decayed = true});
  gpunn_conv2d_attrs attrs{};
  copy(stride, attrs.stride);
  copy(pad, attrs.pad);
  copy(dilation, attrs.dilation);
  attrs.groups = static_cast<int32_t>(groups);
  const ValueId y = c.graph.add1(GPUNN_OP_CONV2D, c.layer.name, Attributes::of(attrs), {c.inputs[0], weight});
  return add_bias_and_activation(c, y, filters, fan_in);
}

ValueId linear(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_rank(x, 2, "[N, features]", "; put a flatten in front");
  const int64_t units = c.arguments.integer("units");
  const ValueId weight = c.parameter(
      {.name = "weight", .shape = {units, x[1]}, .init = InitKind::kaiming_uniform, .fan_in = x[1], .decayed = true});
  const Attributes attrs = Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = 0, .transpose_b = 1});
  const ValueId y = c.graph.add1(GPUNN_OP_MATMUL, c.layer.name, attrs, {c.inputs[0], weight});
  return add_bias_and_activation(c, y, units, x[1]);
}

ValueId max_pool(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_image(x);
  const Pair window = c.arguments.pair("window"), stride = c.arguments.pair("stride");
  const Pair pad = c.arguments.pair("padding");
  slide(x, window, stride, pad, "a window");
  gpunn_pool2d_attrs attrs{};
  copy(window, attrs.window);
  copy(stride, attrs.stride);
  copy(pad, attrs.pad);
  return c.graph.add1(GPUNN_OP_MAX_POOL2D, c.layer.name, Attributes::of(attrs), {c.inputs[0]});
}

ValueId flatten(const LayerContext& c) {
  const TensorType x = c.graph.value(c.inputs[0]).type;
  if (x.shape.size() == 2) return c.inputs[0];
  const int64_t features = element_count(Shape(x.shape.begin() + 1, x.shape.end()));
  return c.graph.add_view(c.layer.name, c.inputs[0], {x.dtype, {x.shape[0], features}});
}

ValueId softmax(const LayerContext& c) {
  require_rank(c.input_shape(), 2, "[N, classes]", "; put a flatten in front");
  return c.graph.add1(GPUNN_OP_SOFTMAX, c.layer.name, {}, {c.inputs[0]});
}

ValueId dropout(const LayerContext& c) {
  const auto p = static_cast<float>(c.arguments.number("p"));
  if (!c.options.training || p == 0) return c.inputs[0];
  if (c.options.step == graph::kNoValue) fail("dropout needs the step counter in training");
  if (p >= 1) fail("p must be below 1 in single precision");
  const Attributes attrs = Attributes::of(
      gpunn_dropout_attrs{.struct_size = 0, .p = p, .seed = c.options.seed, .stream = kDropoutStreams + c.index});
  return c.graph.add1(GPUNN_OP_DROPOUT, c.layer.name, attrs, {c.inputs[0], c.options.step});
}

ValueId add(const LayerContext& c) {
  if (c.input_shape(0) != c.input_shape(1)) {
    fail("expected two inputs of one shape, found " + to_string(c.input_shape(0)) + " and " +
         to_string(c.input_shape(1)));
  }
  return c.graph.add1(GPUNN_OP_ADD, c.layer.name, {}, {c.inputs[0], c.inputs[1]});
}

}  // namespace

LayerFunction layer_function(std::string_view type) {
  static const std::map<std::string_view, LayerFunction> functions = {
      {"conv2d", conv2d},
      {"linear", linear},
      {"relu", activation},
      {"leaky_relu", leaky_relu},
      {"sigmoid", activation},
      {"tanh", activation},
      {"gelu", gelu},
      {"silu", activation},
      {"max_pool", max_pool},
      {"flatten", flatten},
      {"softmax", softmax},
      {"dropout", dropout},
      {"add", add},
  };
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
