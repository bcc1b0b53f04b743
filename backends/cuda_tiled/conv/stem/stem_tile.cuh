// Where a tile of a stem's output pixels is, and the pixels of x that it sees, in shared memory.
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

// Copies the pixels, with zeros for channels that x has not and for the padding. All threads of the block.
template <int kPixel>
__device__ __forceinline__ void load_patch(const uint16_t* x, const Stem& z, const StemTile& tile, uint16_t* patch) {
  const int pixels = z.patch_pitch / kPixel;  // of a row
  const int first_row = tile.row * z.row_stride - z.row_pad,
            first_column = tile.column * z.column_stride - z.column_pad;
  const uint16_t* const image = x + int64_t{tile.image} * z.input_rows * z.input_columns * z.channels;
  // A warp a row at a time, whose lanes read neighbours.
  for (int row = static_cast<int>(threadIdx.x / 32); row < z.patch_rows; row += kStemRows) {
    const int from_row = first_row + row;
    const bool inside = from_row >= 0 && from_row < z.input_rows;
    const uint16_t* const line = image + int64_t{from_row} * z.input_columns * z.channels;
    for (int i = static_cast<int>(threadIdx.x % 32); i < pixels; i += 32) {
      const int from = first_column + i;
      StemPixel<kPixel> pixel{};
      if (inside && from >= 0 && from < z.input_columns) {
#pragma unroll
        for (int c = 0; c < kPixel; ++c) {
          if (c < z.channels) pixel.numbers[c] = line[from * z.channels + c];
        }
      }
      *reinterpret_cast<StemPixel<kPixel>*>(patch + row * z.patch_pitch + i * kPixel) = pixel;
    }
  }
}

}  // namespace gpunn::cuda_tiled
