#include <gpunn/ops.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::Expressions;
using graph::ValueId;

gpunn_pool2d_attrs attributes(const Sizes& window, const Sizes& stride, const Sizes& pad) {
  gpunn_pool2d_attrs attrs{};
  copy(window, attrs.window);
  copy(stride, attrs.stride);
  copy(pad, attrs.pad);
  return attrs;
}

ValueId pool(const LayerContext& c, int32_t op, ValueId x, const gpunn_pool2d_attrs& attrs) {
  return c.graph.add1(op, c.layer.name, Attributes::of(attrs), {x});
}

// What the keys of max_pool and avg_pool say, of all dimensions or of those that are an image's.
struct SlidingWindow {
  Sizes window, stride, dilation;
  Margins padding;
  Margins last;  // what the padding has more at its ends for the last windows of ceil_mode

  SlidingWindow of(const ImageDimensions& image) const {
    return {of_image(window, image, 1), of_image(stride, image, 1), of_image(dilation, image, 1),
            margins_of_image(padding, image), margins_of_image(last, image)};
  }
  Margins all() const {
    Margins sum = padding;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += last[i];
    return sum;
  }
  int64_t reach(std::size_t i) const { return dilation[i] * (window[i] - 1) + 1; }
  bool is_single() const {
    const Margins margins = all();
    const auto is_one = [](int64_t size) { return size == 1; };
    return std::ranges::all_of(window, is_one) && std::ranges::all_of(stride, is_one) &&
           std::ranges::all_of(margins, [](int64_t size) { return size == 0; });
  }
  bool has_gaps(std::size_t i) const { return window[i] > 1 && dilation[i] > 1; }
  // Whether the op pads by itself: at most half the window, on both sides.
  bool by_op() const {
    bool possible = is_symmetric(all());
    for (std::size_t i = 0; i < window.size(); ++i) {
      possible = possible && !has_gaps(i) && all()[2 * i] * 2 <= window[i];
    }
    return possible;
  }
  gpunn_pool2d_attrs attrs() const { return attributes(window, stride, {padding[0], padding[2]}); }
};

// Widens the ends to what the last window needs that begins in the sample or in front of it.
Margins for_last_windows(const Shape& x, const SlidingWindow& s) {
  Margins last(s.padding.size(), 0);
  for (std::size_t i = 0; i < s.window.size(); ++i) {
    const int64_t begin = s.padding[2 * i], room = begin + x[2 + i] + s.padding[2 * i + 1];
    int64_t steps = (room - s.reach(i) + s.stride[i] - 1) / s.stride[i];
    if (steps * s.stride[i] >= begin + x[2 + i]) --steps;
    last[2 * i + 1] = std::max<int64_t>(0, steps * s.stride[i] + s.reach(i) - room);
  }
  return last;
}

SlidingWindow sliding_window(const LayerContext& c) {
  const Shape x = c.input_shape();
  const std::size_t n = require_space(x);
  SlidingWindow s{c.arguments.sizes("window", n), c.arguments.sizes("stride", n), c.arguments.sizes("dilation", n),
                  c.arguments.margins("padding", n), Margins(2 * n, 0)};
  if (c.arguments.boolean("ceil_mode")) s.last = for_last_windows(x, s);
  Sizes reaches;
  for (std::size_t i = 0; i < n; ++i) reaches.push_back(s.reach(i));
  slide(x, reaches, s.stride, s.all(), "a window");
  return s;
}

// An image with a border that no number is below.
ValueId with_lowest_border(const LayerContext& c, ValueId x, const Margins& margins) {
  Expressions e(c.graph, c.layer.name);
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

// Combines what windows with gaps see of images without padding, one dimension after the other. These windows are then
// single elements.
template <class Combine>
ValueId without_gaps(const LayerContext& c, ValueId x, SlidingWindow& s, const Combine& combine) {
  Expressions e(c.graph, c.layer.name);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!s.has_gaps(i)) continue;
    const int64_t count = (e.shape(x)[2 + i] - s.reach(i)) / s.stride[i] + 1;
    const std::vector<ValueId> seen = taps(c, x, 2 + i, s.window[i], s.dilation[i], s.stride[i], count);
    x = seen.front();
    for (std::size_t j = 1; j < seen.size(); ++j) x = combine(e, x, seen[j]);
    s.window[i] = s.stride[i] = 1;
  }
  return x;
}

ValueId max_pool(const LayerContext& c) {
  const SlidingWindow all = sliding_window(c);
  return over_images(c, c.inputs[0], [&](ValueId x, const ImageDimensions& dimensions) {
    SlidingWindow s = all.of(dimensions);
    if (s.is_single()) return x;
    if (s.by_op()) return pool(c, GPUNN_OP_MAX_POOL2D, x, s.attrs());
    x = without_gaps(c, with_lowest_border(c, x, s.all()), s,
                     [](Expressions& e, ValueId a, ValueId b) { return e.maximum(a, b); });
    return pool(c, GPUNN_OP_MAX_POOL2D, x, attributes(s.window, s.stride, {0, 0}));
  });
}

// The mean of each window of images that are padded with zeros.
ValueId means(const LayerContext& c, ValueId x, SlidingWindow s, const Margins& margins) {
  double size = 1;
  for (std::size_t i = 0; i < 2; ++i) size *= s.has_gaps(i) ? static_cast<double>(s.window[i]) : 1;
  x = without_gaps(c, padded(c, x, margins), s, [](Expressions& e, ValueId a, ValueId b) { return e.add(a, b); });
  if (size > 1) x = Expressions(c.graph, c.layer.name).scaled(x, 1 / size);
  gpunn_pool2d_attrs attrs = attributes(s.window, s.stride, {0, 0});
  attrs.count_padding = 1;
  return pool(c, GPUNN_OP_AVG_POOL2D, x, attrs);
}

ValueId avg_pool(const LayerContext& c) {
  const SlidingWindow all = sliding_window(c);
  const bool count_padding = c.arguments.boolean("count_padding");
  for (std::size_t i = 0; i < all.padding.size(); ++i) {
    if (!count_padding && all.padding[i] >= all.reach(i / 2)) {
      fail("padding that is not counted must be below the window: the padding is " + by_margins(all.padding) +
           ", the window " + by(all.window));
    }
  }
  return over_images(c, c.inputs[0], [&](ValueId x, const ImageDimensions& dimensions) {
    const SlidingWindow s = all.of(dimensions);
    if (s.is_single()) return x;
    const bool is_widened = s.all() != s.padding;
    if (s.by_op() && !is_widened) {
      gpunn_pool2d_attrs attrs = s.attrs();
      attrs.count_padding = count_padding ? 1 : 0;
      return pool(c, GPUNN_OP_AVG_POOL2D, x, attrs);
    }
    Expressions e(c.graph, c.layer.name);
    const Shape shape = e.shape(x);
    const ValueId y = means(c, x, s, s.all());
    if (count_padding && !is_widened) return y;
    // Over what of each window counts: the image, or that and its given border.
    if (!count_padding) return e.div(y, means(c, e.constant(1, {1, 1, shape[2], shape[3]}), s, s.all()));
    const Margins& given = s.padding;
    const Shape counted{1, 1, given[0] + shape[2] + given[1], given[2] + shape[3] + given[3]};
    return e.div(y, means(c, e.constant(1, counted), s, s.last));
  });
}

// The means over `size` windows of a dimension of x, which may overlap and differ by one in length: window i is from
// i / size of the whole, rounded down, to (i + 1) / size, rounded up.
ValueId window_means(const LayerContext& c, ValueId x, std::size_t dimension, int64_t size) {
  Expressions e(c.graph, c.layer.name);
  const int64_t whole = e.shape(x)[dimension];
  std::vector<ValueId> means;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t first = i * whole / size, end = ((i + 1) * whole + size - 1) / size;
    means.push_back(e.mean(e.slice(x, dimension, first, end - first), 1U << dimension));
  }
  return joined(e, means, dimension);
}

ValueId adaptive_avg_pool(const LayerContext& c) {
  const std::size_t n = require_space(c.input_shape());
  const Sizes sizes = c.arguments.sizes("size", n);
  return over_images(c, c.inputs[0], [&](ValueId x, const ImageDimensions& dimensions) {
    const Shape shape = c.graph.value(x).type.shape;
    // Where one size is a multiple of the other the windows are equal and apart, or single elements, repeated.
    Sizes window{1, 1}, repeats{1, 1};
    std::vector<std::pair<std::size_t, int64_t>> uneven;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!dimensions[i]) continue;
      const int64_t from = shape[2 + i], to = sizes[*dimensions[i]];
      if (from % to == 0) {
        window[i] = from / to;
      } else if (to % from == 0) {
        repeats[i] = to / from;
      } else {
        uneven.emplace_back(2 + i, to);
      }
    }
    if (window != Sizes{1, 1}) x = pool(c, GPUNN_OP_AVG_POOL2D, x, attributes(window, window, {0, 0}));
    for (const auto& [dimension, size] : uneven) x = window_means(c, x, dimension, size);
    return repeats == Sizes{1, 1} ? x : enlarge(c, x, repeats, GPUNN_UPSAMPLE_NEAREST);
  });
}

// One window of the whole sample, whose dimensions are then left out.
ValueId global_pool(const LayerContext& c, int32_t op) {
  const Shape x = c.input_shape();
  require_space(x);
  const int64_t columns = x.back(), rows = element_count(Shape(x.begin() + 2, x.end() - 1));
  const Sizes whole{rows, columns};
  const ValueId image = view(c, c.inputs[0], {x[0], x[1], rows, columns});
  return view(c, pool(c, op, image, attributes(whole, whole, {0, 0})), {x[0], x[1]});
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
