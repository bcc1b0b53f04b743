#include "common/batch.hpp"

#include <limits>

#include "common/declaration.hpp"

namespace gpunn::backends {
namespace {

Gather gather_of(const OpDesc& desc, int32_t to) {
  const gpunn_tensor& data = desc.input(0);
  const gpunn_tensor& index = desc.input(1);
  const gpunn_tensor& y = desc.output(0);
  require_packed(data, data.dtype, "data");
  require_packed(index, GPUNN_I32, "index");
  require_packed(y, to, "y");
  require(data.rank >= 1, "data must be [n,...]");
  require(index.rank == 1, "index must be [B]");
  gpunn_tensor expected = data;
  expected.dim[0] = index.dim[0];
  require_same_shape(y, expected, "y and the gathered data");
  Gather plan;
  plan.rows = data.dim[0];
  plan.batch = index.dim[0];
  plan.row_size = 1;
  for (int32_t i = 1; i < data.rank; ++i) plan.row_size *= data.dim[i];
  plan.from = data.dtype;
  plan.to = to;
  return plan;
}

}  // namespace

Sample sample_of(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 2);
  const auto attrs = require_attrs<gpunn_sample_attrs>(desc);
  require(attrs.rows >= 1 && attrs.rows <= std::numeric_limits<int32_t>::max(), "rows must be 1 to 2^31 - 1");
  require(attrs.batch >= 1, "the batch must be at least 1");
  require(attrs.drop_last == 0 || attrs.batch <= attrs.rows,
          "the batch is larger than the rows, and the last is dropped");
  require_scalar(desc.input(0), GPUNN_I64, "step");
  require_packed(desc.output(0), GPUNN_I32, "index");
  require_shape(desc.output(0), {attrs.batch}, "index");
  require_scalar(desc.output(1), GPUNN_I32, "count");
  return {.attrs = attrs,
          .steps = attrs.drop_last != 0 ? attrs.rows / attrs.batch : (attrs.rows + attrs.batch - 1) / attrs.batch};
}

Scatter scatter_add_of(const OpDesc& desc) {
  require_declared(desc);
  const gpunn_tensor &x = desc.input(0), &y = desc.output(0);
  Scatter made{.rows = y.dim[0], .batch = x.dim[0]};
  for (int32_t i = 1; i < x.rank; ++i) made.row_size *= x.dim[i];
  return made;
}

Gather gather_rows_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  const int32_t from = desc.input(0).dtype;
  const int32_t to = desc.output(0).dtype;
  require(from == GPUNN_U8 || from == GPUNN_I32 || from == GPUNN_I64 || from == GPUNN_F32,
          "data must be u8, i32, i64 or f32");
  require(to == from || (to == GPUNN_I32 && (from == GPUNN_U8 || from == GPUNN_I64)),
          "y must have data's type, or be i32 where data is u8 or i64");
  return gather_of(desc, to);
}

Gather gather_normalize_of(const OpDesc& desc) {
  require_tensors(desc, 4, 4, 1);
  const gpunn_tensor& data = desc.input(0);
  require(data.dtype == GPUNN_U8 || data.dtype == GPUNN_F32, "data must be u8 or f32");
  require(data.rank >= 2, "data must be [n,C,...]");
  for (const std::size_t i : {std::size_t{2}, std::size_t{3}}) {
    require_packed(desc.input(i), GPUNN_F32, "scale and shift");
    require_shape(desc.input(i), {data.dim[1]}, "scale and shift");
  }
  Gather plan = gather_of(desc, GPUNN_F32);
  plan.channels = data.dim[1];
  return plan;
}

}  // namespace gpunn::backends
