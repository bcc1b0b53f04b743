#include "common/copy.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace gpunn::backends {

Copy copy_of(const OpDesc& desc) { return copy_loops(desc.input(0), desc.output(0)); }

Copy copy_loops(const gpunn_tensor& x, const gpunn_tensor& y) {
  Copy copy;
  copy.from = x.dtype;
  copy.to = y.dtype;
  copy.n = plugin::element_count(y);

  int32_t order[GPUNN_MAX_RANK];
  std::iota(order, order + y.rank, 0);
  std::stable_sort(order, order + y.rank,
                   [&](int32_t a, int32_t b) { return std::abs(y.stride[a]) > std::abs(y.stride[b]); });
  for (int32_t k = 0; k < y.rank; ++k) {
    const int32_t i = order[k];
    if (y.dim[i] == 1) continue;
    require(y.stride[i] != 0 || copy.n == 0, "elements of y overlap");
    const int32_t last = copy.rank - 1;
    if (copy.rank > 0 && copy.x_stride[last] == x.stride[i] * x.dim[i] &&
        copy.y_stride[last] == y.stride[i] * y.dim[i]) {
      copy.dim[last] *= y.dim[i];
      copy.x_stride[last] = x.stride[i];
      copy.y_stride[last] = y.stride[i];
    } else {
      copy.dim[copy.rank] = y.dim[i];
      copy.x_stride[copy.rank] = x.stride[i];
      copy.y_stride[copy.rank] = y.stride[i];
      ++copy.rank;
    }
  }
  if (copy.rank == 0) {
    copy.dim[0] = copy.x_stride[0] = copy.y_stride[0] = 1;
    copy.rank = 1;
  }
  return copy;
}

}  // namespace gpunn::backends
