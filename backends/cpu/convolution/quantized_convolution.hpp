// Convolution of channels-last images in eight bits, as matrix products with sums in 32 bits (implicit GEMM). A dense
// layer is the convolution of images of one pixel.
#pragma once

#include <gpunn/ops.h>

#include <cstddef>
#include <cstdint>

#include "common/convolution.hpp"
#include "convolution/constant_filter.hpp"
#include "convolution/image_rows.hpp"
#include "int8/int8_products.hpp"
#include "simd/int8.hpp"

namespace gpunn::cpu {

class QuantizedConvolution {
 public:
  QuantizedConvolution(const ConvolutionShape& shape, const gpunn_quantized_conv2d_attrs& attrs, int threads,
                       const Int8Products& products);

  // The filter as run() reads it, and the sums of each filter's numbers.
  FilterLayout filter_layout() const;
  std::size_t packed_bytes() const;
  void pack_filter(const uint8_t* filter, void* packed) const;

  struct Operands {
    const uint8_t* x = nullptr;
    const void* packed = nullptr;
    const float* scale = nullptr;       // of the filters
    const float* bias = nullptr;        // null: there is none
    const uint8_t* residual = nullptr;  // null: there is none
    uint8_t* y = nullptr;
    float* numbers = nullptr;  // in place of y: the sums as numbers, without activation and residual
  };
  // Beside the packed filter.
  std::size_t scratch_bytes() const;
  void run(const Operands& operands, void* scratch) const;

 private:
  // What a channel's sum is scaled by, and what it begins with.
  struct Channels {
    const float* factor;
    const float* offset;
    const int32_t* first;
  };

  Channels scale_channels(const Operands& operands, std::byte* scratch) const;
  void multiply(const Operands& operands, const Channels& channels, int64_t task, std::byte* rows) const;
  std::size_t filter_bytes() const;
  int64_t padded_channels() const;
  Int8Store store_of(const Operands& operands) const;

  // Of a channel alone each, in quantized_depthwise.cpp. The packed filter is [tap][channel], of i16.
  std::size_t depthwise_bytes() const;
  void pack_depthwise(const uint8_t* filter, int16_t* packed) const;
  void run_depthwise(const Operands& operands, const Channels& channels, int32_t* sums) const;

  Int8Products products_;
  const Int8Kernels* kernels_;
  ConvolutionShape shape_;
  gpunn_quantized_conv2d_attrs attrs_;
  int threads_;
  GroupedImages source_;
  TargetClass targets_;
  int64_t outputs_;  // channels of a group
  int64_t pixels_;   // of all images
  int64_t terms_;    // of a sum
  int64_t padded_terms_;
  int64_t row_stride_;
  bool in_place_;
  bool depthwise_;  // as many groups as channels
  int64_t panels_;  // of a group
  int64_t block_pixels_;
  int64_t blocks_;
  int64_t splits_ = 1;  // of the panels
};

}  // namespace gpunn::cpu
