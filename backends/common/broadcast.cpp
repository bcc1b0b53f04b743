#include "common/broadcast.hpp"

#include "common/memory_order.hpp"

namespace gpunn::backends {
namespace {

// The stride of an operand along dimension i of y.
int64_t stride_along(const gpunn_tensor& operand, const gpunn_tensor& y, int32_t i) {
  const int32_t own = i - (y.rank - operand.rank);
  return own < 0 || operand.dim[own] == 1 ? 0 : operand.stride[own];
}

}  // namespace

Broadcast broadcast_of(const OpDesc& desc) {
  const gpunn_tensor& y = desc.output(0);
  Broadcast made;
  made.operands = static_cast<int32_t>(desc.inputs());
  made.n = plugin::element_count(y);
  for (const int32_t i : MemoryOrder(y)) {
    if (y.dim[i] == 1) continue;
    int64_t stride[Broadcast::kMostOperands] = {};
    bool merges = made.rank > 0;
    for (int32_t k = 0; k < made.operands; ++k) {
      stride[k] = stride_along(desc.input(static_cast<std::size_t>(k)), y, i);
      merges = merges && made.stride[k][made.rank - 1] == stride[k] * y.dim[i];
    }
    if (!merges) made.dim[made.rank++] = 1;
    made.dim[made.rank - 1] *= y.dim[i];
    for (int32_t k = 0; k < made.operands; ++k) made.stride[k][made.rank - 1] = stride[k];
  }
  if (made.rank == 0) made.dim[made.rank++] = 1;
  return made;
}

}  // namespace gpunn::backends
