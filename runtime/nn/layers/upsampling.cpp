#include <gpunn/ops.h>

#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::ValueId;

ValueId upsample(const LayerContext& c) {
  require_image(c.input_shape());
  const bool bilinear = c.arguments.choice("mode") == "bilinear";
  return enlarge(c, c.inputs[0], c.arguments.sizes("factor", 2),
                 bilinear ? GPUNN_UPSAMPLE_BILINEAR : GPUNN_UPSAMPLE_NEAREST);
}

// The last dimension as weighted sums of its values, by a matrix [size, last] that is kept as a buffer.
ValueId resized_last(const LayerContext& c, ValueId x, const char* name, int64_t size) {
  Shape shape = c.graph.value(x).type.shape;
  const int64_t last = shape.back();
  const ValueId weights =
      c.buffer({.name = name, .shape = {size, last}, .init = InitKind::interpolation, .fan_in = last});
  const ValueId sums = weighted_sums(c, view(c, x, {element_count(shape) / last, last}), weights);
  shape.back() = size;
  return view(c, sums, shape);
}

ValueId turned(const LayerContext& c, ValueId x) {
  gpunn_transpose_attrs attrs{};
  attrs.rank = 4;
  const int32_t order[4] = {0, 1, 3, 2};
  for (std::size_t i = 0; i < 4; ++i) attrs.permutation[i] = order[i];
  return c.graph.add1(GPUNN_OP_TRANSPOSE, c.layer.name, graph::Attributes::of(attrs), {x});
}

ValueId resize(const LayerContext& c) {
  require_image(c.input_shape());
  ValueId x = c.inputs[0];
  if (const int64_t columns = c.arguments.integer("columns"); columns > 0) x = resized_last(c, x, "columns", columns);
  if (const int64_t rows = c.arguments.integer("rows"); rows > 0)
    x = turned(c, resized_last(c, turned(c, x), "rows", rows));
  return x;
}

}  // namespace

LayerFunctions upsampling_layers() {
  return {
      {"upsample", upsample},
      {"resize", resize},
  };
}

}  // namespace gpunn::nn
