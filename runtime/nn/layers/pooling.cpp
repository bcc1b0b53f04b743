#include <gpunn/op_signature.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::ValueId;

gpunn_pool2d_attrs attributes(const Pair& window, const Pair& stride, const Pair& pad) {
  gpunn_pool2d_attrs attrs{};
  copy(window, attrs.window);
  copy(stride, attrs.stride);
  copy(pad, attrs.pad);
  return attrs;
}

ValueId pool(const LayerContext& c, int32_t op, ValueId x, const gpunn_pool2d_attrs& attrs) {
  return c.graph.add1(op, c.layer.name, Attributes::of(attrs), {x});
}

// What the keys of max_pool and avg_pool say.
struct SlidingWindow {
  Pair window, stride;
  Margins padding;

  // Whether the op pads by itself.
  bool by_op() const { return is_symmetric(padding) && padding[0] * 2 <= window[0] && padding[2] * 2 <= window[1]; }
  gpunn_pool2d_attrs attrs() const {
    return attributes(window, stride, by_op() ? Pair{padding[0], padding[2]} : Pair{0, 0});
  }
};

SlidingWindow sliding_window(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_image(x);
  const SlidingWindow s{c.arguments.pair("window"), c.arguments.pair("stride"), c.arguments.margins("padding")};
  slide(x, s.window, s.stride, s.padding, "a window");
  return s;
}

// One behind the other, as many at a time as the op takes.
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

// x with a border that no number is below.
ValueId with_lowest_border(const LayerContext& c, ValueId x, const Margins& margins) {
  graph::Expressions e(c.graph, c.layer.name);
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<ValueId> parts;
    const auto add_border = [&](int64_t size) {
      Shape border = e.shape(x);
      border[2 + i] = size;
      if (size > 0) parts.push_back(e.constant(-std::numeric_limits<double>::infinity(), border));
    };
    add_border(margins[2 * i]);
    parts.push_back(x);
    add_border(margins[2 * i + 1]);
    x = joined(e, parts, 2 + i);
  }
  return x;
}

// Widens the border below and on the right to what the last window needs that begins in the image.
void take_last_window(const Shape& x, SlidingWindow& s) {
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t begin = s.padding[2 * i];
    int64_t& end = s.padding[2 * i + 1];
    const int64_t room = begin + x[2 + i] + end;
    int64_t steps = (room - s.window[i] + s.stride[i] - 1) / s.stride[i];
    if (steps * s.stride[i] >= begin + x[2 + i]) --steps;
    end += std::max<int64_t>(0, steps * s.stride[i] + s.window[i] - room);
  }
}

ValueId max_pool(const LayerContext& c) {
  SlidingWindow s = sliding_window(c);
  if (c.arguments.boolean("ceil_mode")) take_last_window(c.input_shape(), s);
  const ValueId x = s.by_op() ? c.inputs[0] : with_lowest_border(c, c.inputs[0], s.padding);
  return pool(c, GPUNN_OP_MAX_POOL2D, x, s.attrs());
}

ValueId avg_pool(const LayerContext& c) {
  SlidingWindow s = sliding_window(c);
  const Shape x = c.input_shape();
  const Margins given = s.padding;
  if (c.arguments.boolean("ceil_mode")) take_last_window(x, s);
  const bool widened = s.padding != given;
  const bool count_padding = c.arguments.boolean("count_padding");
  const bool by_op = s.by_op() && !widened;
  gpunn_pool2d_attrs attrs = by_op ? s.attrs() : attributes(s.window, s.stride, {0, 0});
  attrs.count_padding = count_padding ? 1 : 0;
  if (by_op) return pool(c, GPUNN_OP_AVG_POOL2D, c.inputs[0], attrs);
  const auto means = [&](ValueId of, const Margins& margins) {
    return pool(c, GPUNN_OP_AVG_POOL2D, padded(c, of, margins), attrs);
  };
  const ValueId y = means(c.inputs[0], s.padding);
  if (count_padding && !widened) return y;
  // Over what of each window counts: the image, or that and its given border.
  graph::Expressions e(c.graph, c.layer.name);
  if (!count_padding) return e.div(y, means(e.constant(1, {1, 1, x[2], x[3]}), s.padding));
  const Shape counted{1, 1, given[0] + x[2] + given[1], given[2] + x[3] + given[3]};
  const Margins more{0, s.padding[1] - given[1], 0, s.padding[3] - given[3]};
  return e.div(y, means(e.constant(1, counted), more));
}

// The means over `size` windows of a dimension of x, which may overlap and differ by one in length: window i is from
// i / size of the whole, rounded down, to (i + 1) / size, rounded up.
ValueId window_means(const LayerContext& c, ValueId x, std::size_t dimension, int64_t size) {
  graph::Expressions e(c.graph, c.layer.name);
  const int64_t whole = e.shape(x)[dimension];
  std::vector<ValueId> means;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t first = i * whole / size, end = ((i + 1) * whole + size - 1) / size;
    means.push_back(e.mean(e.slice(x, dimension, first, end - first), 1U << dimension));
  }
  return joined(e, means, dimension);
}

ValueId adaptive_avg_pool(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_image(x);
  const Pair size = c.arguments.pair("size");
  // Where one size is a multiple of the other the windows are equal and apart, or single elements, repeated.
  Pair window{1, 1}, repeats{1, 1};
  std::array<bool, 2> uneven{};
  for (std::size_t i = 0; i < 2; ++i) {
    if (x[2 + i] % size[i] == 0) {
      window[i] = x[2 + i] / size[i];
    } else if (size[i] % x[2 + i] == 0) {
      repeats[i] = size[i] / x[2 + i];
    } else {
      uneven[i] = true;
    }
  }
  ValueId y = c.inputs[0];
  if (window != Pair{1, 1}) y = pool(c, GPUNN_OP_AVG_POOL2D, y, attributes(window, window, {0, 0}));
  for (std::size_t i = 0; i < 2; ++i) {
    if (uneven[i]) y = window_means(c, y, 2 + i, size[i]);
  }
  return repeats == Pair{1, 1} ? y : enlarge(c, y, repeats, GPUNN_UPSAMPLE_NEAREST);
}

// One window of the whole image, whose rows and columns are then left out.
ValueId global_pool(const LayerContext& c, int32_t op) {
  const Shape& x = c.input_shape();
  require_image(x);
  const Pair whole{x[2], x[3]};
  const Shape left{x[0], x[1]};  // taken now: x is gone when the graph grows
  return view(c, pool(c, op, c.inputs[0], attributes(whole, whole, {0, 0})), left);
}

ValueId global_avg_pool(const LayerContext& c) { return global_pool(c, GPUNN_OP_AVG_POOL2D); }
ValueId global_max_pool(const LayerContext& c) { return global_pool(c, GPUNN_OP_MAX_POOL2D); }

}  // namespace

LayerFunctions pooling_layers() {
  return {
      {"max_pool", max_pool},
      {"avg_pool", avg_pool},
      {"adaptive_avg_pool", adaptive_avg_pool},
      {"global_avg_pool", global_avg_pool},
      {"global_max_pool", global_max_pool},
  };
}

}  // namespace gpunn::nn
