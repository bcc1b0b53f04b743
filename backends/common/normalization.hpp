// BATCH_NORM, BATCH_NORM_INFERENCE, LAYER_NORM, INSTANCE_NORM, LOCAL_RESPONSE_NORM, and their gradients.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// x[rows, channels, size]: `size` is the product of the dimensions after the channel's, 1 for [N,C].
struct BatchNorm {
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t size = 1;
  float epsilon = 0;
  float momentum = 0;
  bool counted = false;        // the last input says how many rows enter the statistics
  bool channels_last = false;  // x lies as [rows, size, channels]

  constexpr int64_t elements() const { return rows * channels * size; }
};

inline BatchNorm batch_norm_of(const OpDesc& desc) {
  const gpunn_tensor& x = desc.input(0);
  const auto attrs = desc.attrs<gpunn_batch_norm_attrs>();
  return {.rows = x.dim[0],
          .channels = x.dim[1],
          .size = size_from(x, 2),
          .epsilon = attrs.epsilon,
          .momentum = attrs.momentum,
          .counted = desc.inputs() == 6,
          .channels_last = plugin::has_channels_last(desc)};
}

inline BatchNorm batch_norm_inference_of(const OpDesc& desc) { return batch_norm_of(desc); }

// BATCH_NORM_BACKWARD has no attributes.
inline BatchNorm batch_norm_backward_of(const OpDesc& desc) {
  const gpunn_tensor& x = desc.input(1);
  return {.rows = x.dim[0],
          .channels = x.dim[1],
          .size = size_from(x, 2),
          .counted = desc.inputs() == 6,
          .channels_last = plugin::has_channels_last(desc)};
}

// x[rows, columns].
struct LayerNorm {
  int64_t rows = 0;
  int64_t columns = 0;
  float epsilon = 0;

  constexpr int64_t elements() const { return rows * columns; }
};

inline LayerNorm layer_norm_of(const OpDesc& desc) {
  const gpunn_tensor& x = desc.input(0);
  return {.rows = x.dim[0], .columns = x.dim[1], .epsilon = desc.attrs<gpunn_layer_norm_attrs>().epsilon};
}

inline LayerNorm layer_norm_backward_of(const OpDesc& desc) {
  return {.rows = desc.input(1).dim[0], .columns = desc.input(1).dim[1]};
}

// x[rows, channels, size] as above. A plane is a channel of a row.
struct InstanceNorm {
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t size = 1;
  float epsilon = 0;
  bool channels_last = false;    // x lies as [rows, size, channels]
  uint64_t workspace_bytes = 0;  // of the backward: two f64 a plane

  constexpr int64_t planes() const { return rows * channels; }
  constexpr int64_t elements() const { return planes() * size; }
  // The divisor of a plane's sums. A plane without elements has a mean and a variance of 0.
  constexpr int64_t terms() const { return size > 0 ? size : 1; }
};

inline InstanceNorm instance_norm_of(const OpDesc& desc) {
  const gpunn_tensor& x = desc.input(0);
  return {.rows = x.dim[0],
          .channels = x.dim[1],
          .size = size_from(x, 2),
          .epsilon = desc.attrs<gpunn_layer_norm_attrs>().epsilon,
          .channels_last = plugin::has_channels_last(desc)};
}

inline InstanceNorm instance_norm_backward_of(const OpDesc& desc) {
  const gpunn_tensor& x = desc.input(1);
  InstanceNorm shape{.rows = x.dim[0],
                     .channels = x.dim[1],
                     .size = size_from(x, 2),
                     .channels_last = plugin::has_channels_last(desc)};
  shape.workspace_bytes = static_cast<uint64_t>(shape.planes()) * 2 * sizeof(double);
  return shape;
}

// x[rows, channels, size] as above. The denominator of channel c is k + factor * the sum of x^2 over the channels from
// c - before to c + behind that exist.
struct LocalResponse {
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t size = 1;
  int64_t before = 0;
  int64_t behind = 0;
  float factor = 0;  // alpha / size
  float beta = 0;
  float k = 1;
  uint64_t workspace_bytes = 0;  // of the backward: a float an element

  constexpr int64_t elements() const { return rows * channels * size; }
};

inline LocalResponse local_response_norm_of(const OpDesc& desc) {
  const gpunn_tensor& x = desc.input(0);
  const auto attrs = desc.attrs<gpunn_local_response_norm_attrs>();
  return {.rows = x.dim[0],
          .channels = x.dim[1],
          .size = size_from(x, 2),
          .before = attrs.size / 2,
          .behind = (attrs.size - 1) / 2,
          .factor = attrs.alpha / static_cast<float>(attrs.size),
          .beta = attrs.beta,
          .k = attrs.k};
}

inline LocalResponse local_response_norm_backward_of(const OpDesc& desc) {
  LocalResponse shape = local_response_norm_of(desc);
  shape.workspace_bytes = static_cast<uint64_t>(shape.elements()) * sizeof(float);
  return shape;
}

}  // namespace gpunn::backends
