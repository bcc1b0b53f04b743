#include <utility>

#include "bench/requests/request.hpp"

namespace gpunn::bench {

namespace {

using graph::Attributes;
using graph::OpSignature;

OpRequest sample(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 1) bad(r, "the number of rows, with batch= if wanted");
  const int64_t batch = take(r, "batch", 128);
  if (batch < 1 || batch > r.sizes[0]) bad(r, "a batch of 1 to as many rows as there are");
  const gpunn_sample_attrs attrs{.struct_size = 0,
                                 .shuffle = 1,
                                 .rows = r.sizes[0],
                                 .batch = static_cast<int32_t>(batch),
                                 .drop_last = 1,
                                 .seed = 1,
                                 .stream = 1};
  return OpSignature{.op = info.id, .attrs = Attributes::of(attrs), .inputs = {step_type()}, .outputs = {}};
}

// A batch of rows, which lie anywhere.
OpRequest gather(Written& r, const graph::OpInfo& info) {
  const bool normalize = info.id == GPUNN_OP_GATHER_NORMALIZE;
  if (r.sizes.size() < (normalize ? 2U : 1U) || r.sizes[0] < 1) {
    bad(r, "the data's dimensions, rows first, with batch= if wanted");
  }
  const int64_t batch = take(r, "batch", 128);
  OpSignature s{.op = info.id, .attrs = {}, .inputs = {f32(r.sizes), i32({batch})}, .outputs = {}};
  if (normalize) {
    s.inputs[0] = {DType::u8, r.sizes};
    s.inputs.insert(s.inputs.end(), 2, f32({r.sizes[1]}));
  }
  return {s, {{1, below(r.sizes[0])}}};
}

// Rows that are added to any of as many.
OpRequest scatter(Written& r, const graph::OpInfo& info) {
  if (r.sizes.empty() || r.sizes[0] < 1) bad(r, "the dimensions of x, rows first, with rows= of y if wanted");
  const int64_t rows = take(r, "rows", r.sizes[0]);
  OpSignature s{.op = info.id,
                .attrs = Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = rows}),
                .inputs = {f32(r.sizes), i32({r.sizes[0]})},
                .outputs = {}};
  return {s, {{1, below(rows)}}};
}

OpRequest advance(Written& r, const graph::OpInfo& info) {
  if (!r.sizes.empty()) bad(r, "'' or increment=");
  const gpunn_advance_attrs attrs{.struct_size = 0, .reserved = 0, .increment = take(r, "increment", 1)};
  return OpSignature{.op = info.id, .attrs = Attributes::of(attrs), .inputs = {step_type()}, .outputs = {}};
}

OpRequest table(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 1 || r.sizes[0] < 1) bad(r, "the length of the table");
  const int64_t middle = r.sizes[0] / 2;
  OpSignature s{.op = info.id, .attrs = {}, .inputs = {}, .outputs = {}};
  s.inputs.push_back(f32(std::move(r.sizes)));
  s.inputs.push_back(step_type());
  if (info.id == GPUNN_OP_TABLE_STORE) s.inputs.push_back(f32({}));
  return {std::move(s), {{1, constant(static_cast<double>(middle))}}};
}

}  // namespace

void add_batch(Builders& builders) {
  builders[GPUNN_OP_SAMPLE_INDICES] = sample;
  builders[GPUNN_OP_SCATTER_ADD] = scatter;
  builders[GPUNN_OP_GATHER_ROWS] = builders[GPUNN_OP_GATHER_NORMALIZE] = gather;
  builders[GPUNN_OP_ADVANCE] = advance;
  builders[GPUNN_OP_TABLE_LOAD] = builders[GPUNN_OP_TABLE_STORE] = table;
}

}  // namespace gpunn::bench
