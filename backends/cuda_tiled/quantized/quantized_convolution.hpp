// QUANTIZED_CONV2D of channels-last images as a product of pixels and filters on tensor cores (implicit GEMM). The
// kernel is in quantized_kernel.cuh. QUANTIZED_LINEAR is the convolution of images of one pixel.
#pragma once

#include <gpunn/ops.h>

#include <cstdint>

#include <cuda_runtime_api.h>

#include "common/convolution.hpp"
#include "divider.cuh"

namespace gpunn::cuda_tiled {

struct QuantizedConvolution {
  backends::ConvolutionShape shape{};
  gpunn_quantized_conv2d_attrs attrs{};
  bool relu = false;
  bool residual = false;
  bool dense = false;  // QUANTIZED_LINEAR
  bool bias = true;
  int64_t terms = 0;  // of a sum

  // The base serves packed images, with one thread an element.
  int score() const { return 2; }
};

// The kernels' arguments. Each group has `outputs` of the all_outputs channels of y, and group_channels of the
// `channels` channels of x.
struct QuantizedArguments {
  const uint8_t* x = nullptr;
  const uint8_t* w = nullptr;
  const float* scale = nullptr;       // of each filter
  const float* bias = nullptr;        // null: there is none
  const uint8_t* residual = nullptr;  // likewise
  uint8_t* y = nullptr;
  float* numbers = nullptr;          // in place of y: the sums as numbers, without residual
  const uint8_t* padding = nullptr;  // 16 bytes, each the zero point of x; null: that is 0
  const int32_t* first = nullptr;    // what each filter's sums begin with; null: 0
  int pixels = 0;                    // of y, in all images
  Divider output_image, output_columns;
  int rows = 0, columns = 0;
  int channels = 0, group_channels = 0;
  int taps_in_row = 0;
  int row_stride = 0, column_stride = 0;
  int row_pad = 0, column_pad = 0;
  int row_dilation = 0, column_dilation = 0;
  int terms = 0;
  int outputs = 0, all_outputs = 0, groups = 0;
  bool vectors = false;  // y and the residual have groups of 16 channels
  uint32_t x_zero_point = 0;
  float x_scale = 0, y_scale = 0;
  float residual_factor = 0, residual_zero = 0;
  int32_t y_zero_point = 0, low = 0;  // the lowest number that is stored
};

// A block computes tile_m pixels x tile_n filters of y, each of its warps warp_m x warp_n, from `stages` tiles of
// tile_k terms.
struct QuantizedTile {
  int tile_m, tile_n, tile_k;
  int warp_m, warp_n;
  int stages;
};

// For images whose groups have a multiple of 16 channels.
inline constexpr QuantizedTile kQuantizedTiles[] = {
    {128, 128, 64, 64, 32, 4}, {128, 128, 128, 64, 32, 3}, {128, 256, 64, 64, 64, 4}, {256, 128, 64, 64, 64, 4},
    {256, 64, 64, 64, 32, 4},  {128, 64, 64, 32, 32, 4},   {64, 64, 64, 32, 32, 4},
};
// For any number of channels.
inline constexpr QuantizedTile kGatheredTiles[] = {{128, 64, 64, 32, 32, 2}, {64, 64, 64, 32, 32, 2}};

// Uses the tile kQuantizedTiles[index] or kGatheredTiles[index].
void launch_quantized(int index, const QuantizedArguments& arguments, cudaStream_t stream);
void launch_gathered(int index, const QuantizedArguments& arguments, cudaStream_t stream);

// For a dense layer of up to kMostDenseRows rows whose number of terms is a multiple of 16.
inline constexpr int kMostDenseRows = 8;
void launch_dense_rows(const QuantizedArguments& arguments, cudaStream_t stream);

// Writes first[filters], -x_zero_point times the sum of each filter's numbers, and the 16 bytes of padding.
void prepare_zero_point(const uint8_t* w, int64_t filters, int64_t terms, int32_t x_zero_point, int32_t* first,
                        uint8_t* padding, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
