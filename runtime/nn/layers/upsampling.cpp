#include <gpunn/ops.h>

#include <algorithm>
#include <array>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::ValueId;

// The last dimension as weighted sums of its values. `weights`: [size, last].
ValueId resized_last(const LayerContext& c, ValueId x, ValueId weights) {
  Shape shape = c.graph.value(x).type.shape;
  const ValueId sums = weighted_sums(c, view(c, x, {element_count(shape) / shape.back(), shape.back()}), weights);
  shape.back() = c.graph.value(weights).type.shape[0];
  return view(c, sums, shape);
}

// Rows and columns as weighted sums; kNoValue: as before.
ValueId resized(const LayerContext& c, ValueId x, ValueId rows, ValueId columns) {
  const std::vector<int32_t> turned = {0, 1, 3, 2};
  if (columns != graph::kNoValue) x = resized_last(c, x, columns);
  if (rows != graph::kNoValue) x = permuted(c, resized_last(c, permuted(c, x, turned), rows), turned);
  return x;
}

// The weights [to, from] by which `from` values become `to`, as PyTorch's interpolate() has them, with
// `align_corners=False`. They are computed, so that a model has them for images of any size.
ValueId interpolation(const LayerContext& c, int64_t to, int64_t from, bool bilinear) {
  graph::Expressions e(c.graph, c.layer.name);
  const ValueId i = places_along(e, 2, 0, to), j = places_along(e, 2, 1, from);
  const double step = static_cast<double>(from) / static_cast<double>(to), last = static_cast<double>(from - 1);
  const auto of_step = [&](ValueId x) {
    return e.div(e.scaled(x, static_cast<double>(from)), e.constant(static_cast<double>(to)));
  };
  ValueId place = i;
  if (bilinear) {
    place = e.add(of_step(i), e.constant(0.5 * step - 0.5));
    place = e.minimum(e.maximum(place, e.constant(0)), e.constant(last));
  } else {
    place = floor(e, of_step(i));
  }
  // A triangle around each place.
  const ValueId apart = e.sub(place, j);
  return e.maximum(e.sub(e.constant(1), e.maximum(apart, e.scaled(apart, -1))), e.constant(0));
}

ValueId upsample(const LayerContext& c) {
  require_image(c.input_shape());
  const Sizes given = c.arguments.sizes("factor", 2);
  const bool bilinear = c.arguments.choice("mode") == "bilinear";
  const auto enlarged = [&](const Sizes& factor) {
    return enlarge(c, c.inputs[0], factor, bilinear ? GPUNN_UPSAMPLE_BILINEAR : GPUNN_UPSAMPLE_NEAREST);
  };
  const bool alone = c.inputs.size() == 1;
  if (std::ranges::count(given, 0) != (alone ? 0 : 2)) {
    fail("expected either a factor, or a second input whose rows and columns are taken: from: [x, like]");
  }
  if (alone) return enlarged(given);
  const Shape x = c.input_shape(0), like = c.input_shape(1);
  require_image(like);
  Sizes whole{1, 1};
  std::array<ValueId, 2> weights{graph::kNoValue, graph::kNoValue};
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t from = x[2 + i], to = like[2 + i];
    if (to % from == 0) {
      whole[i] = to / from;
    } else {
      weights[i] = interpolation(c, to, from, bilinear);
    }
  }
  return resized(c, whole == Sizes{1, 1} ? c.inputs[0] : enlarged(whole), weights[0], weights[1]);
}

// The weights are buffers, for those of an ONNX file.
ValueId resize(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_image(x);
  const auto weights = [&](const char* name, int64_t from) {
    const int64_t to = c.arguments.integer(name);
    return to == 0 ? graph::kNoValue
                   : c.buffer({.name = name, .shape = {to, from}, .init = InitKind::interpolation, .fan_in = from});
  };
  const ValueId columns = weights("columns", x[3]), rows = weights("rows", x[2]);
  return resized(c, c.inputs[0], rows, columns);
}

}  // namespace

LayerFunctions upsampling_layers() {
  return {
      {"upsample", upsample},
      {"resize", resize},
  };
}

}  // namespace gpunn::nn
