// Writes the windows of images with few channels to memory (im2col): lines of [taps, channels], as the filters have
// them. TMA would fetch 64 channels of each pixel, however few there are.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "half/half_product.hpp"

namespace gpunn::cuda_tiled {

struct HalfUnfold {
  const void* from = nullptr;  // [images, pixel_rows, pixel_columns, channels]
  void* to = nullptr;          // [images * windows, pitch]
  Windows windows;
  int64_t count = 0;  // windows of all images
  int row_step = 1;   // pixels from a tap to the next
  int column_step = 1;
  int pixel_rows = 0;
  int pixel_columns = 0;
  Divider channels;
  Divider filter_columns;
  int line = 0;   // taps x channels
  int pitch = 0;  // a multiple of 8
};

void unfold_half(const HalfUnfold& unfold, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
