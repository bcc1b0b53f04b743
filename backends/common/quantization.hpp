// QUANTIZE, DEQUANTIZE, FAKE_QUANTIZE, QUANTIZE_FILTER, QUANTIZED_LINEAR and QUANTIZED_GLOBAL_AVG_POOL2D.
#pragma once

#include <cstdint>

#include "common/convolution.hpp"
#include "common/requirements.hpp"

namespace gpunn::backends {

// A stored number q represents (q - zero_point) * scale.
struct Quantize {
  int64_t n = 0;
  float scale = 1;
  float zero_point = 0;
};

inline Quantize quantize_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_quantize_attrs>();
  return {.n = plugin::element_count(desc.output(0)),
          .scale = attrs.scale,
          .zero_point = static_cast<float>(attrs.zero_point)};
}

struct Filters {
  int64_t filters = 0;
  int64_t size = 0;  // of one
};

inline Filters filters_of(const OpDesc& desc) {
  const int64_t filters = desc.input(0).dim[0];
  return {.filters = filters, .size = plugin::element_count(desc.input(0)) / filters};
}

// QUANTIZED_LINEAR as a QUANTIZED_CONV2D of images of one pixel. Its results are numbers, not stored in eight bits.
struct QuantizedLinear {
  ConvolutionShape shape;
  gpunn_quantized_conv2d_attrs attrs;
  bool bias;
};

inline QuantizedLinear quantized_linear_of(const OpDesc& desc) {
  constexpr ConvolutionAxis kPixel{.inputs = 1, .outputs = 1, .taps = 1, .stride = 1, .pad = 0, .dilation = 1};
  const auto of_x = desc.attrs<gpunn_quantize_attrs>();
  QuantizedLinear layer{.shape = {.batch = desc.input(0).dim[0],
                                  .groups = 1,
                                  .group_inputs = desc.input(0).dim[1],
                                  .group_outputs = desc.input(1).dim[0],
                                  .rows = kPixel,
                                  .columns = kPixel},
                        .attrs = {},
                        .bias = desc.inputs() > 3};
  layer.attrs.x_scale = of_x.scale;
  layer.attrs.x_zero_point = of_x.zero_point;
  layer.attrs.y_scale = 1;
  return layer;
}

// QUANTIZED_GLOBAL_AVG_POOL2D. A mean is stored as round(sum * x_scale / pixels / y_scale) + y_zero_point, in double,
// where `sum` is of the numbers less their zero point.
struct QuantizedMean {
  int64_t images = 0;
  int64_t channels = 0;
  int64_t pixels = 0;
  bool channels_last = false;
  gpunn_requantize_attrs attrs{};
};

inline QuantizedMean quantized_mean_of(const OpDesc& desc) {
  constexpr int64_t kMostPixels = 1 << 23;
  const gpunn_tensor& x = desc.input(0);
  const QuantizedMean mean{.images = x.dim[0],
                           .channels = x.dim[1],
                           .pixels = x.dim[2] * x.dim[3],
                           .channels_last = plugin::has_channels_last(desc),
                           .attrs = desc.attrs<gpunn_requantize_attrs>()};
  require(mean.pixels <= kMostPixels, "is for images of up to 2^23 pixels, whose sums fit 32 bits");
  return mean;
}

}  // namespace gpunn::backends
