#include "bench/requests/request.hpp"

namespace gpunn::bench {

namespace {

using graph::Attributes;
using graph::OpSignature;

OpRequest norm(Written& r, const graph::OpInfo& info) {
  return OpSignature{.op = info.id, .attrs = {}, .inputs = {f32(r.sizes)}, .outputs = {}};
}

// The sum over the dimensions whose bits axes= has: without it, over all but the second.
OpRequest reduction(Written& r, const graph::OpInfo& info) {
  if (r.sizes.empty() || r.sizes.size() > GPUNN_MAX_RANK) {
    bad(r, "1 to 8 dimensions, with axes= (a bit a dimension), mean=1 or max=1 if wanted");
  }
  const auto all = static_cast<uint32_t>((1U << r.sizes.size()) - 1);
  const auto axes = static_cast<uint32_t>(take(r, "axes", r.sizes.size() > 1 ? all & ~2U : all));
  const bool mean = take(r, "mean", 0) != 0, largest = take(r, "max", 0) != 0;
  const int32_t kind = largest ? GPUNN_REDUCE_MAX : mean ? GPUNN_REDUCE_MEAN : GPUNN_REDUCE_SUM;
  return OpSignature{
      .op = info.id,
      .attrs = Attributes::of(gpunn_reduce_attrs{.struct_size = 0, .kind = kind, .axes = axes, .keep_dims = 0}),
      .inputs = {f32(r.sizes)},
      .outputs = {}};
}

// All rows count.
OpRequest rows(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 1) bad(r, "the number of rows");
  const int64_t n = r.sizes[0];
  OpSignature s{.op = info.id, .attrs = {}, .inputs = {f32({n}), count_type()}, .outputs = {}};
  if (info.id == GPUNN_OP_MEAN_ROWS_BACKWARD) {
    s.attrs = Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = n});
    s.inputs[0] = f32({});
  }
  return {s, {{1, constant(static_cast<double>(n))}}};
}

OpRequest metrics(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 2 || r.sizes[1] < 1) bad(r, "N,C");
  const int64_t n = r.sizes[0];
  const OpSignature s{.op = info.id,
                      .attrs = {},
                      .inputs = {f32({n}), count_type(), {DType::f64, {4}}, f32(r.sizes), i32({n})},
                      .outputs = {}};
  return {s, {{1, constant(static_cast<double>(n))}, {2, constant(0)}, {4, below(r.sizes[1])}}};
}

}  // namespace

void add_reduction(Builders& builders) {
  builders[GPUNN_OP_NORM] = norm;
  builders[GPUNN_OP_REDUCE] = reduction;
  builders[GPUNN_OP_MEAN_ROWS] = builders[GPUNN_OP_MEAN_ROWS_BACKWARD] = rows;
  builders[GPUNN_OP_METRICS_ACCUMULATE] = metrics;
}

}  // namespace gpunn::bench
