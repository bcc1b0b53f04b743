// Tensor maps: descriptions of a matrix for Hopper's tensor memory accelerator (TMA).
#pragma once

#include <cstdint>

#include <cuda.h>

namespace gpunn::cuda_tiled {

// `outer` lines of `inner` numbers, each line `pitch` numbers after the one before.
struct MatrixInMemory {
  const void* data;
  int64_t inner;
  int64_t outer;
  int64_t pitch;
};

inline constexpr int kLineBytes = 128;  // of a row of a tile in shared memory, the swizzle's span

// TMA needs lines to begin at multiples of this number of bytes.
inline constexpr int64_t kTensorMapAlignment = 16;

// For copies of boxes of box_outer lines of 128 bytes, swizzled by 128 bytes. Float32 is rounded to TF32 on the way.
// Calls no CUDA function that a capture would mind.
CUtensorMap tf32_tensor_map(const MatrixInMemory& matrix, int box_outer);
CUtensorMap bf16_tensor_map(const MatrixInMemory& matrix, int box_outer);

// For copies of boxes of box_outer lines of 64 bytes, swizzled by 64 bytes.
CUtensorMap byte_tensor_map(const MatrixInMemory& matrix, int box_outer);

// A matrix of 16-bit numbers: `outer` times `taps` lines of `inner` numbers, with lines `pitch` numbers apart.
struct TapsInMemory {
  const void* data;
  int64_t inner;
  int64_t taps;
  int64_t outer;
  int64_t pitch;
};

// For copies of boxes of box_outer lines of 64 numbers, all of one tap.
CUtensorMap half_tensor_map(const TapsInMemory& matrix, int box_outer);

// The windows that are read of channels-last images of 16-bit numbers, whose pixels are `pitch` numbers apart. A window
// begins at every stride-th pixel of an axis from `first` on, `windows` times.
struct WindowAxis {
  int64_t pixels;
  int64_t windows;
  int64_t first;
  int64_t stride;
};
struct ImagesInMemory {
  const void* data;
  int64_t images;
  int64_t channels;
  int64_t pitch;
  WindowAxis rows, columns;
};

// Whether TMA can gather such windows, of which the last tap lies `reach` pixels behind the first.
bool has_window_map(const WindowAxis& axis, int64_t reach);

// For copies of one pixel of each of `pixels` windows, 64 channels of it.
CUtensorMap window_tensor_map(const ImagesInMemory& images, int pixels);

// Channels-last images of 16-bit numbers without gaps.
struct PixelsInMemory {
  const void* data;
  int64_t images;
  int64_t rows;
  int64_t columns;
  int64_t channels;
};

inline constexpr int kMostBox = 256;  // pixels of a row, and of a column, that TMA brings

// For copies of boxes of an image, so many rows and columns and 64 channels of them. Both are at most kMostBox.
CUtensorMap pixel_tensor_map(const PixelsInMemory& pixels, int box_rows, int box_columns);

}  // namespace gpunn::cuda_tiled
