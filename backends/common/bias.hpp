// BIAS_ADD, BIAS_BACKWARD and BIAS_ACTIVATION_BACKWARD.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// x[rows, channels, size] and b[channels]: `size` is the product of the dimensions after the channel's, 1 for [N,C].
struct Bias {
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t size = 1;
  bool relu = false;  // of BIAS_ACTIVATION_BACKWARD

  constexpr int64_t elements() const { return rows * channels * size; }
};

// The first input is x, or dy.
inline Bias bias_add_of(const OpDesc& desc) {
  const gpunn_tensor& x = desc.input(0);
  // Channels-last images form a matrix with one row a pixel.
  if (plugin::has_channels_last(desc)) return {.rows = x.dim[0] * size_from(x, 2), .channels = x.dim[1], .size = 1};
  return {.rows = x.dim[0], .channels = x.dim[1], .size = size_from(x, 2)};
}

inline Bias bias_backward_of(const OpDesc& desc) { return bias_add_of(desc); }

inline Bias bias_activation_backward_of(const OpDesc& desc) {
  Bias shape = bias_add_of(desc);
  shape.relu = is_relu(desc.attrs<gpunn_bias_activation_backward_attrs>().activation);
  return shape;
}

}  // namespace gpunn::backends
