// The position of a tile of a stem's output pixels, and the copy of the pixels of x that it reads to shared memory.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "conv/stem/stem.hpp"

namespace gpunn::cuda_tiled {

struct StemTile {
  int image, row, column;  // of the first output pixel

  __device__ StemTile(const Stem& z, int tile) {
    const auto [line, at_column] = z.by_tile_columns(tile);
    const auto [at_image, at_row] = z.by_tile_rows(line);
    image = at_image;
    row = at_row * kStemRows;
    column = at_column * kStemColumns;
  }

  __device__ int64_t pixel(const Stem& z, int of_row, int of_column) const {
    return (int64_t{image} * z.output_rows + row + of_row) * z.output_columns + column + of_column;
  }
};

// kPixel numbers of 16 bits.
template <int kPixel>
struct alignas(kPixel * 2) StemPixel {
  uint16_t numbers[kPixel];
};

// Copies the pixels, with zeros for channels that x has not and for the padding. All threads of the block, each pixels
// of which neighbours have neighbours; several at a time, so that their loads are under way together.
template <int kPixel>
__device__ __forceinline__ void load_patch(const uint16_t* x, const Stem& z, const StemTile& tile, uint16_t* patch) {
  constexpr int kAtOnce = kPixel == 4 ? 6 : 3;
  const int first_row = tile.row * z.row_stride - z.row_pad;
  const int first_column = tile.column * z.column_stride - z.column_pad;
  const uint16_t* const image = x + int64_t{tile.image} * z.input_rows * z.input_columns * z.channels;
  const int pixels = z.patch_rows * static_cast<int>(z.by_patch_pixels.by);
  for (int first = static_cast<int>(threadIdx.x); first < pixels; first += kAtOnce * kStemThreads) {
    StemPixel<kPixel> loaded[kAtOnce] = {};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const auto [row, column] = z.by_patch_pixels(first + i * kStemThreads);
      const int from_row = first_row + row, from_column = first_column + column;
      if (from_row < 0 || from_row >= z.input_rows || from_column < 0 || from_column >= z.input_columns) continue;
      const uint16_t* const from = image + (from_row * z.input_columns + from_column) * z.channels;
#pragma unroll
      for (int c = 0; c < kPixel; ++c) {
        if (c < z.channels) loaded[i].numbers[c] = from[c];
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = first + i * kStemThreads;
      if (at < pixels) *reinterpret_cast<StemPixel<kPixel>*>(patch + at * kPixel) = loaded[i];
    }
  }
}

}  // namespace gpunn::cuda_tiled
