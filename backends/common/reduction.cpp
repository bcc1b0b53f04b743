#include "common/reduction.hpp"

#include <bit>

#include "common/memory_order.hpp"

namespace gpunn::backends {
namespace {

bool reduces(const gpunn_reduce_attrs& attrs, int32_t dimension) { return (attrs.axes >> dimension & 1U) != 0; }

// The dimension of y that keeps dimension i of x.
int32_t kept_as(const gpunn_reduce_attrs& attrs, int32_t i) {
  if (attrs.keep_dims != 0) return i;
  return i - std::popcount(attrs.axes & ((1U << i) - 1));
}

}  // namespace

Reduce reduce_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_reduce_attrs>();
  const gpunn_tensor &x = desc.input(0), &y = desc.output(0);

  // Merged dimensions, innermost first.
  int64_t sizes[GPUNN_MAX_RANK] = {};
  bool is_reduced[GPUNN_MAX_RANK] = {};
  int32_t rank = 0;
  int64_t kept = 1;  // elements of y so far
  const MemoryOrder order(x);
  for (int32_t k = x.rank - 1; k >= 0; --k) {
    const int32_t i = order[k];
    if (x.dim[i] == 1) continue;
    const bool reduced = reduces(attrs, i);
    if (!reduced) {
      require(y.stride[kept_as(attrs, i)] == kept || plugin::element_count(y) == 0,
              "the dimensions that stay of channels-last images must lie in y as they do in x");
      kept *= x.dim[i];
    }
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
  plan.outputs = plugin::element_count(desc.output(0));
  plan.terms = plan.reduced.count();
  return plan;
}

}  // namespace gpunn::backends
