#include "common/reduction.hpp"

namespace gpunn::backends {
namespace {

bool reduces(const gpunn_reduce_attrs& attrs, int32_t dimension) { return (attrs.axes >> dimension & 1U) != 0; }

void require_reduced_shape(const gpunn_tensor& x, const gpunn_tensor& y, const gpunn_reduce_attrs& attrs) {
  gpunn_tensor expected{};
  for (int32_t i = 0; i < x.rank; ++i) {
    if (!reduces(attrs, i)) expected.dim[expected.rank++] = x.dim[i];
    if (reduces(attrs, i) && attrs.keep_dims != 0) expected.dim[expected.rank++] = 1;
  }
  require_same_shape(y, expected, "y and the reduced x");
}

}  // namespace

Reduce reduce_of(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 1);
  const auto attrs = require_attrs<gpunn_reduce_attrs>(desc);
  const gpunn_tensor& x = desc.input(0);
  const gpunn_tensor& y = desc.output(0);
  require_packed(x, GPUNN_F32, "x");
  require_packed(y, GPUNN_F32, "y");
  require(attrs.kind == GPUNN_REDUCE_SUM || attrs.kind == GPUNN_REDUCE_MEAN || attrs.kind == GPUNN_REDUCE_MAX,
          "no such kind of reduction");
  require(attrs.axes >> x.rank == 0, "an axis is beyond x's rank");
  require_reduced_shape(x, y, attrs);

  // Merged dimensions, innermost first.
  int64_t sizes[GPUNN_MAX_RANK] = {};
  bool is_reduced[GPUNN_MAX_RANK] = {};
  int32_t rank = 0;
  for (int32_t i = x.rank - 1; i >= 0; --i) {
    if (x.dim[i] == 1) continue;
    const bool reduced = reduces(attrs, i);
    if (rank > 0 && is_reduced[rank - 1] == reduced) {
      sizes[rank - 1] *= x.dim[i];
    } else {
      sizes[rank] = x.dim[i];
      is_reduced[rank++] = reduced;
    }
  }
  int64_t stride[GPUNN_MAX_RANK] = {};
  for (int32_t i = 0; i < rank; ++i) stride[i] = i == 0 ? 1 : stride[i - 1] * sizes[i - 1];

  Reduce plan;
  plan.kind = attrs.kind;
  for (int32_t i = rank - 1; i >= 0; --i) (is_reduced[i] ? plan.reduced : plan.kept).add(sizes[i], stride[i]);
  plan.innermost_is_reduced = rank > 0 && is_reduced[0];
  plan.outputs = plugin::element_count(y);
  plan.terms = plan.reduced.count();
  require(plan.kind != GPUNN_REDUCE_MAX || plan.terms > 0 || plan.outputs == 0, "the maximum of nothing");
  return plan;
}

int64_t mean_rows_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  require_packed(desc.input(0), GPUNN_F32, "x");
  require(desc.input(0).rank == 1, "x must be [N]");
  require_scalar(desc.input(1), GPUNN_I32, "count");
  require_scalar(desc.output(0), GPUNN_F32, "y");
  return desc.input(0).dim[0];
}

int64_t mean_rows_backward_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_rows_attrs>(desc);
  require_scalar(desc.input(0), GPUNN_F32, "dy");
  require_scalar(desc.input(1), GPUNN_I32, "count");
  require_packed(desc.output(0), GPUNN_F32, "dx");
  require_shape(desc.output(0), {attrs.rows}, "dx");
  return attrs.rows;
}

int64_t norm_of(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 1);
  require_packed(desc.input(0), GPUNN_F32, "x");
  require_scalar(desc.output(0), GPUNN_F32, "y");
  return plugin::element_count(desc.input(0));
}

}  // namespace gpunn::backends
