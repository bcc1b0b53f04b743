// Convolutions of images with up to eight channels, as at the beginning of networks: forward pass and weight gradient
// of channels-last bf16 and f16 images. As products over taps and channels their inner loops would be mostly empty, or
// their windows would have to be written to memory. Here a thread block holds the pixels of its windows in shared
// memory. Each pixel is padded to 4 or 8 numbers, so that a row of a window's taps is one contiguous line. Windows that
// lie `stride` pixels apart begin at multiples of 16 bytes, and ldmatrix reads them as rows of a matrix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "conv/half/half_convolution.hpp"
#include "divider.cuh"

namespace gpunn::cuda_tiled {

// Output pixels of a block: each warp has one of its rows, two pieces of 16 pixels.
inline constexpr int kStemRows = 8, kStemColumns = 32;
inline constexpr int kStemFilters = 64;  // of a block
inline constexpr int kStemThreads = 32 * kStemRows;

// All numbers have 16 bits.
struct Stem {
  int channels = 0, filters = 0;
  int input_rows = 0, input_columns = 0, output_rows = 0, output_columns = 0;
  int tap_rows = 0, tap_columns = 0;
  int row_stride = 1, column_stride = 1, row_pad = 0, column_pad = 0;
  int pixel = 0;                        // numbers of a pixel in shared memory, 4 or 8
  int line = 0;                         // numbers of a row of taps, whole pieces of 16
  int last = 0;                         // of the last piece, those that are of taps
  int patch_rows = 0, patch_pitch = 0;  // of the pixels that a tile sees; the pitch in numbers
  int filter_groups = 0;
  int tiles = 0;
  Divider by_tile_columns, by_tile_rows;  // a tile's place: image, row and column
  Divider by_patch_pixels;                // of a row of the patch

  constexpr int filter_pitch() const {
    return tap_rows * line + 8;
  }                                                       // an odd number of 16 bytes: rows take turns at the banks
  constexpr int sums() const { return tap_rows * line; }  // of a filter's gradient, those of no tap included
};

// Throws Refusal.
Stem stem_of(const HalfConvolution& problem);

void run_stem_forward(const HalfConvolution& problem, const Stem& stem, const OpArgs& args, cudaStream_t stream);

// The workspace in bytes. Each block stores its sums there, and a second kernel adds them in their order.
uint64_t stem_workspace(const Stem& stem);
void run_stem_backward_filter(const HalfConvolution& problem, const Stem& stem, const OpArgs& args,
                              cudaStream_t stream);

// Whether stem kernels serve the problem.
bool is_stem(const HalfConvolution& problem);

// The variant conv:half_stem, for forward passes and weight gradients.
Variant<HalfConvolution> stem_variant();

}  // namespace gpunn::cuda_tiled
