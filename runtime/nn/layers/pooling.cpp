#include <gpunn/ops.h>

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

// Where an image is smaller than the size asked for, each of its elements is the mean of several windows.
ValueId adaptive_avg_pool(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_image(x);
  const Pair size = c.arguments.pair("size");
  Pair window{1, 1}, repeats{1, 1};
  for (std::size_t i = 0; i < 2; ++i) {
    if (x[2 + i] % size[i] == 0) {
      window[i] = x[2 + i] / size[i];
    } else if (size[i] % x[2 + i] == 0) {
      repeats[i] = size[i] / x[2 + i];
    } else {
      fail("expected rows and columns that are multiples of the size " + by(size) +
           " or that it is a multiple of, found an input of " + to_string(x));
    }
  }
  ValueId y = c.inputs[0];
  if (window != Pair{1, 1}) y = pool(c, GPUNN_OP_AVG_POOL2D, attributes(window, window, {0, 0}));
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
