// MAX_POOL2D, AVG_POOL2D and their gradients.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// One axis: window o covers the inputs o * stride - pad to o * stride - pad + window - 1 that lie within the image.
// There is at least one.
struct PoolAxis {
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t window = 1;
  int64_t stride = 1;
  int64_t pad = 0;
};

struct Pool {
  int64_t planes = 0;  // images times channels
  int64_t channels = 1;
  PoolAxis rows;
  PoolAxis columns;
  bool count_padding = false;  // of AVG_POOL2D: a mean is over the whole window, padding being 0
  bool channels_last = false;  // images lie as [rows, columns, channels]

  constexpr int64_t input_size() const { return rows.inputs * columns.inputs; }
  constexpr int64_t output_size() const { return rows.outputs * columns.outputs; }
};

namespace detail {

inline Pool pool_between(const OpDesc& desc, const gpunn_tensor& x, const gpunn_tensor& y) {
  const auto attrs = desc.attrs<gpunn_pool2d_attrs>();
  const auto axis = [&](int i) {
    return PoolAxis{.inputs = x.dim[2 + i],
                    .outputs = y.dim[2 + i],
                    .window = attrs.window[i],
                    .stride = attrs.stride[i],
                    .pad = attrs.pad[i]};
  };
  return {.planes = x.dim[0] * x.dim[1],
          .channels = x.dim[1],
          .rows = axis(0),
          .columns = axis(1),
          .count_padding = attrs.count_padding != 0,
          .channels_last = plugin::has_channels_last(desc)};
}

}  // namespace detail

inline Pool max_pool_of(const OpDesc& desc) { return detail::pool_between(desc, desc.input(0), desc.output(0)); }
inline Pool max_pool_backward_of(const OpDesc& desc) {
  return detail::pool_between(desc, desc.input(1), desc.input(0));
}
inline Pool avg_pool_of(const OpDesc& desc) { return detail::pool_between(desc, desc.input(0), desc.output(0)); }
inline Pool avg_pool_backward_of(const OpDesc& desc) {
  return detail::pool_between(desc, desc.output(0), desc.input(0));
}

}  // namespace gpunn::backends
