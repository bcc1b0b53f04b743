#include "nn/layers/global_batch_norm.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cstddef>

#include "graph/expressions.hpp"

namespace gpunn::nn {

using graph::Attributes;
using graph::Expressions;
using graph::ValueId;

namespace {

ValueId sum_over_ranks(const LayerContext& c, Expressions& e, ValueId x) {
  const Shape shape = e.shape(x);
  const gpunn_all_reduce_attrs parts{.struct_size = 0, .parts = c.options.world};
  return e.view(e.op(GPUNN_OP_ALL_REDUCE, {e.view(x, {1, element_count(shape)})}, Attributes::of(parts)), shape);
}

// f32[rows]: 1 for those that count, 0 for the others.
ValueId counted_rows(Expressions& e, ValueId count, int64_t rows) {
  const gpunn_rows_attrs attrs{.struct_size = 0, .reserved = 0, .rows = rows};
  return e.op(GPUNN_OP_MEAN_ROWS_BACKWARD, {e.to_f32(count), count}, Attributes::of(attrs));
}

}  // namespace

ValueId add_global_batch_norm(const LayerContext& c, const BatchNormValues& values, float epsilon, float momentum) {
  const std::size_t first = c.graph.nodes().size();
  Expressions e(c.graph, c.layer.name);
  const Shape x = e.shape(values.x);
  const uint32_t all_but_channels = e.all(values.x) & ~2U;
  Shape by_channel(x.size() - 1, 1), by_row(x.size(), 1);
  by_channel[0] = x[1];
  by_row[0] = x[0];
  const auto inner = static_cast<double>(element_count(Shape(x.begin() + 2, x.end())));
  const ValueId count = c.options.counted;
  const bool counts = count != graph::kNoValue;
  const ValueId size = counts ? e.scaled(sum_over_ranks(c, e, e.to_f32(count)), inner)
                              : e.constant(static_cast<double>(x[0]) * inner * c.options.world);
  const ValueId weights = counts ? e.view(counted_rows(e, count, x[0]), by_row) : graph::kNoValue;
  const auto mean_of = [&](ValueId terms) {
    return e.div(sum_over_ranks(c, e, e.sum(terms, all_but_channels, false)), size);
  };
  const auto weighted = [&](ValueId terms) { return counts ? e.mul(terms, weights) : terms; };

  const ValueId mean = mean_of(weighted(values.x));
  const ValueId deviation = e.sub(values.x, e.view(mean, by_channel));
  const ValueId variance = mean_of(e.mul(weighted(deviation), deviation));
  const ValueId scale = e.mul(e.rsqrt(e.add(variance, e.constant(epsilon))), values.gamma);
  const ValueId y = e.add(e.mul(deviation, e.view(scale, by_channel)), e.view(values.beta, by_channel));

  const ValueId one = e.constant(1);
  const ValueId unbiased = e.mul(variance, e.div(size, e.maximum(e.sub(size, one), one)));
  const auto follow = [&](ValueId running, ValueId fresh) {
    c.graph.add_into(GPUNN_OP_COPY, c.layer.name, {}, {e.moving_average(running, fresh, 1 - momentum)}, {running});
  };
  follow(values.mean, mean);
  follow(values.variance, unbiased);
  if (c.options.wide != nullptr) {
    for (std::size_t node = first; node < c.graph.nodes().size(); ++node) c.options.wide->insert(node);
  }
  return y;
}

}  // namespace gpunn::nn
