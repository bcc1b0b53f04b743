#include <gpunn/op_signature.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <array>
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

ValueId pool(const LayerContext& c, int32_t op, const gpunn_pool2d_attrs& attrs) {
  return c.graph.add1(op, c.layer.name, Attributes::of(attrs), {c.inputs[0]});
}

// What the keys of max_pool and avg_pool say.
gpunn_pool2d_attrs sliding_window(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_image(x);
  const Pair window = c.arguments.pair("window"), stride = c.arguments.pair("stride");
  const Pair pad = c.arguments.pair("padding");
  slide(x, window, stride, pad, "a window");
  return attributes(window, stride, pad);
}

ValueId max_pool(const LayerContext& c) { return pool(c, GPUNN_OP_MAX_POOL2D, sliding_window(c)); }

ValueId avg_pool(const LayerContext& c) {
  gpunn_pool2d_attrs attrs = sliding_window(c);
  attrs.count_padding = c.arguments.boolean("count_padding") ? 1 : 0;
  return pool(c, GPUNN_OP_AVG_POOL2D, attrs);
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
  if (window != Pair{1, 1}) y = pool(c, GPUNN_OP_AVG_POOL2D, attributes(window, window, {0, 0}));
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
  return view(c, pool(c, op, attributes(whole, whole, {0, 0})), left);
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
