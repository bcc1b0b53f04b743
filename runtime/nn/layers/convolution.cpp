// Convolutions of lines, images and volumes. The op takes images: a line is the only row of one, and the planes that a
// window of a volume sees become channels.
#include <gpunn/ops.h>

#include <numeric>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::Expressions;
using graph::ValueId;

// The keys of a layer, for its dimensions.
struct Convolution {
  std::size_t dimensions;
  int64_t filters, groups;
  Sizes kernel, stride, dilation;

  Sizes reach() const {
    Sizes result;
    for (std::size_t i = 0; i < dimensions; ++i) result.push_back(dilation[i] * (kernel[i] - 1) + 1);
    return result;
  }
  int64_t kernel_size() const { return std::accumulate(kernel.begin(), kernel.end(), int64_t{1}, std::multiplies<>()); }
  // The part of a number a dimension, or of margins, that an op's attributes have.
  static Sizes last_two(const Sizes& sizes, int64_t otherwise) {
    return {sizes.size() > 1 ? sizes[sizes.size() - 2] : otherwise, sizes.back()};
  }
  gpunn_conv2d_attrs attributes(const Sizes& pad) const {
    gpunn_conv2d_attrs attrs{};
    copy(last_two(stride, 1), attrs.stride);
    copy(last_two(pad, 0), attrs.pad);
    copy(last_two(dilation, 1), attrs.dilation);
    attrs.groups = static_cast<int32_t>(groups);
    return attrs;
  }
};

Convolution convolution_of(const LayerContext& c, std::size_t dimensions) {
  constexpr const char* kExpected[] = {"[N, channels, length]", "[N, channels, rows, columns]",
                                       "[N, channels, planes, rows, columns]"};
  const Shape x = c.input_shape();
  require_rank(x, dimensions + 2, kExpected[dimensions - 1], "");
  require_channels_in_multiple(x, c.arguments.integer("groups"), "groups");
  return {dimensions,
          c.arguments.integer("filters"),
          c.arguments.integer("groups"),
          c.arguments.sizes("kernel", dimensions),
          c.arguments.sizes("stride", dimensions),
          c.arguments.sizes("dilation", dimensions)};
}

// Zeros that keep the size at stride 1; the odd one is at the end, as in PyTorch.
Margins same(const Sizes& reach) {
  Margins margins;
  for (const int64_t size : reach) margins.insert(margins.end(), {(size - 1) / 2, size / 2});
  return margins;
}

Sizes before(const Margins& margins) {
  Sizes result;
  for (std::size_t i = 0; i < margins.size(); i += 2) result.push_back(margins[i]);
  return result;
}

// x[N, C, ...] as [N, planes, C, rows * columns].
ValueId planes_first(const LayerContext& c, ValueId x) {
  const Shape s = c.graph.value(x).type.shape;
  return permuted(c, view(c, x, {s[0], s[1], s[2], s[3] * s[4]}), {0, 2, 1, 3});
}

// The reverse of it.
ValueId channels_first(const LayerContext& c, ValueId x, int64_t rows, int64_t columns) {
  const Shape s = c.graph.value(x).type.shape;
  return view(c, permuted(c, x, {0, 2, 1, 3}), {s[0], s[2], s[1], rows, columns});
}

// A weight [A, B, ...] of images, where B holds the planes of volumes.
ValueId image_weight(const LayerContext& c, ValueId w) {
  const Shape s = c.graph.value(w).type.shape;
  if (s.size() == 3) return view(c, w, {s[0], s[1], 1, s[2]});
  return s.size() == 4 ? w : view(c, w, {s[0], s[1] * s[2], s[3], s[4]});
}

// What the windows of images see of planes: [N * planes, C * kernel[0], rows, columns].
ValueId planes_as_channels(const LayerContext& c, ValueId x, const Convolution& conv, int64_t planes) {
  Expressions e(c.graph, c.layer.name);
  const Shape s = e.shape(x);
  std::vector<ValueId> seen = taps(c, planes_first(c, x), 1, conv.kernel[0], conv.dilation[0], conv.stride[0], planes);
  for (ValueId& tap : seen) tap = e.view(tap, {s[0], planes, s[1], 1, s[3] * s[4]});
  return e.view(joined(e, seen, 3), {s[0] * planes, s[1] * conv.kernel[0], s[3], s[4]});
}

template <std::size_t dimensions>
ValueId convolution(const LayerContext& c) {
  const Shape x = c.input_shape();
  const Convolution conv = convolution_of(c, dimensions);
  const Margins padding =
      c.arguments.is_same("padding") ? same(conv.reach()) : c.arguments.margins("padding", dimensions);
  const Sizes size = slide(x, conv.reach(), conv.stride, padding, "a kernel");
  Shape y_shape{x[0], conv.filters}, w_shape{conv.filters, x[1] / conv.groups};
  y_shape.insert(y_shape.end(), size.begin(), size.end());
  w_shape.insert(w_shape.end(), conv.kernel.begin(), conv.kernel.end());
  require_sane_size(Shape(y_shape.begin() + 1, y_shape.end()));

  const int64_t fan_in = x[1] / conv.groups * conv.kernel_size();
  const ValueId w = weight_tensor(c, weight(c, w_shape, fan_in, conv.filters * conv.kernel_size()));
  // The op pads rows and columns, equally on both sides.
  Margins own(padding.size(), 0), by_op = padding;
  if constexpr (dimensions == 3) {
    std::copy_n(padding.begin(), 2, own.begin());
    std::fill_n(by_op.begin(), 2, 0);
  }
  if (!is_symmetric(by_op)) {
    own = padding;
    by_op.assign(padding.size(), 0);
  }
  ValueId image = padded(c, c.inputs[0], own);
  if constexpr (dimensions == 1) image = view(c, image, {x[0], x[1], 1, c.graph.value(image).type.shape[2]});
  if constexpr (dimensions == 3) image = planes_as_channels(c, image, conv, size[0]);
  const Attributes attrs = Attributes::of(conv.attributes(before(by_op)));
  ValueId y = c.graph.add1(GPUNN_OP_CONV2D, c.layer.name, attrs, {image, image_weight(c, w)});
  if constexpr (dimensions == 3) {
    y = view(c, y, {x[0], size[0], conv.filters, size[1] * size[2]});
    y = channels_first(c, y, size[1], size[2]);
  }
  return add_bias_and_activation(c, view(c, y, y_shape), conv.filters, fan_in);
}

// The sum of what each plane of the input gives for planes of the whole output: y[N, planes, F * kernel[0], ...].
ValueId summed_planes(const LayerContext& c, ValueId y, const Convolution& conv, int64_t whole) {
  Expressions e(c.graph, c.layer.name);
  const Shape s = e.shape(y);
  const int64_t planes = s[1], step = conv.stride[0], pixels = s[3];
  y = e.view(y, {s[0], planes, conv.filters, conv.kernel[0], pixels});
  ValueId sum = graph::kNoValue;
  for (int64_t i = 0; i < conv.kernel[0]; ++i) {
    const auto with_zeros = [&](ValueId x, std::size_t dimension, int64_t in_front, int64_t behind) {
      if (in_front + behind == 0) return x;
      gpunn_pad_attrs pad{};
      pad.rank = static_cast<int32_t>(e.rank(x));
      pad.before[dimension] = in_front;
      pad.after[dimension] = behind;
      return e.op(GPUNN_OP_PAD, {x}, Attributes::of(pad));
    };
    // Zeros between the planes.
    ValueId part = e.view(e.slice(y, 3, i, 1), {s[0], planes, 1, conv.filters * pixels});
    part = e.view(with_zeros(part, 2, 0, step - 1), {s[0], planes * step, conv.filters, pixels});
    const int64_t length = (planes - 1) * step + 1, in_front = i * conv.dilation[0];
    if (step > 1) part = e.slice(part, 1, 0, length);
    part = with_zeros(part, 1, in_front, whole - length - in_front);
    sum = sum == graph::kNoValue ? part : e.add(sum, part);
  }
  return sum;
}

template <std::size_t dimensions>
ValueId transposed_convolution(const LayerContext& c) {
  const Shape x = c.input_shape();
  const Convolution conv = convolution_of(c, dimensions);
  const Margins padding = c.arguments.margins("padding", dimensions);
  const Sizes more = c.arguments.sizes("output_padding", dimensions);
  Sizes whole, size;
  for (std::size_t i = 0; i < dimensions; ++i) {
    whole.push_back((x[2 + i] - 1) * conv.stride[i] + conv.reach()[i] + more[i]);
    size.push_back(whole[i] - padding[2 * i] - padding[2 * i + 1]);
    if (size[i] < 1) fail("padding of " + by_margins(padding) + " leaves nothing of an input of " + to_string(x));
  }
  Shape sane = whole, w_shape{x[1], conv.filters / conv.groups};
  sane.insert(sane.begin(), conv.filters);
  require_sane_size(sane);
  w_shape.insert(w_shape.end(), conv.kernel.begin(), conv.kernel.end());

  // Both as PyTorch counts them, by the weight's first two dimensions.
  const int64_t fan_in = conv.filters / conv.groups * conv.kernel_size();
  const ValueId w = c.parameter(weight(c, w_shape, fan_in, x[1] * conv.kernel_size()));
  // The op cuts rows and columns, equally on both sides.
  Margins by_op = padding;
  if constexpr (dimensions == 3) std::fill_n(by_op.begin(), 2, 0);
  if (!is_symmetric(by_op)) by_op.assign(padding.size(), 0);
  Sizes given = whole;
  for (std::size_t i = 0; i < dimensions; ++i) given[i] -= 2 * by_op[2 * i];

  Expressions e(c.graph, c.layer.name);
  ValueId image = c.inputs[0];
  if constexpr (dimensions == 1) image = e.view(image, {x[0], x[1], 1, x[2]});
  if constexpr (dimensions == 3) image = e.view(planes_first(c, image), {x[0] * x[2], x[1], x[3], x[4]});
  const ValueId filter = image_weight(c, w);
  gpunn_conv2d_attrs attrs = conv.attributes(before(by_op));
  copy(Convolution::last_two(given, 1), attrs.input_size);
  copy(Convolution::last_two(conv.kernel, 1), attrs.filter_size);
  ValueId y = e.op(GPUNN_OP_CONV2D_BACKWARD_DATA, {image, filter}, Attributes::of(attrs));
  if constexpr (dimensions == 1) y = e.view(y, {x[0], conv.filters, given[0]});
  if constexpr (dimensions == 3) {
    y = e.view(y, {x[0], x[2], conv.filters * conv.kernel[0], given[1] * given[2]});
    y = channels_first(c, summed_planes(c, y, conv, whole[0]), given[1], given[2]);
  }
  for (std::size_t i = 0; i < dimensions; ++i) {
    if (given[i] != size[i]) y = e.slice(y, 2 + i, padding[2 * i], size[i]);
  }
  return add_bias_and_activation(c, y, conv.filters, fan_in);
}

}  // namespace

LayerFunctions convolution_layers() {
  return {
      {"conv1d", convolution<1>},
      {"conv2d", convolution<2>},
      {"conv3d", convolution<3>},
      {"conv1d_transpose", transposed_convolution<1>},
      {"conv2d_transpose", transposed_convolution<2>},
      {"conv3d_transpose", transposed_convolution<3>},
  };
}

}  // namespace gpunn::nn
