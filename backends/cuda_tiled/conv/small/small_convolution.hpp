// Convolutions and their gradients in TF32 for shapes with few output tiles. One kernel reads its operands as they lie
// in memory, so that no kernel before it packs data and none after it adds partial sums.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <cuda_runtime_api.h>

#include "conv/convolution.hpp"
#include "divider.cuh"

namespace gpunn::cuda_tiled::small {

// How the numbers of a tile are loaded: pixels by fours, pixels one by one, or one by one with a tap for each.
enum class Source { kVectors, kPixels, kTaps };

inline constexpr int kMaxTaps = 32;
inline constexpr int kMostSplits = 8;  // blocks of a cluster, which any GPU with clusters allows

// Warps multiply 32 by 32, and `groups` of them divide the `terms` of a stage.
struct Tile {
  int rows, columns, terms, groups;
};

inline constexpr std::array<Tile, 4> kTiles = {{{64, 64, 32, 2}, {64, 64, 32, 1}, {32, 32, 64, 4}, {128, 64, 32, 1}}};

// A product c[rows, columns] = a[rows, terms] * b[terms, columns]. Forward: filters by pixels, terms are channels and
// taps. Data gradient: channels by pixels of dx, or where there is one tap by those of dy, terms are filters and taps.
// Weight gradient: filters by channels and taps, terms are pixels of dy.
struct Plan {
  ConvolutionPass pass;
  Source source;
  int rows, columns, terms;
  int inputs, outputs;  // channels
  int input_rows, input_columns, input_plane;
  int output_rows, output_columns, output_plane;
  int row_stride, column_stride;
  int row_pad, column_pad;
  int row_dilation, column_dilation;
  int taps, column_taps;
  int row_tiles, column_tiles;
  int chunks;     // stages' worths of terms
  int splits;     // blocks of a cluster, which share a tile's terms
  bool together;  // four columns of the result lie side by side, aligned
  Divider by_taps, by_output_plane, by_output_columns;
  Divider by_pixel_plane, by_pixel_columns;  // of the images whose pixels are columns
};

// Returns nothing if the kernel does not serve the shape.
std::optional<Plan> plan_of(ConvolutionPass pass, const backends::ConvolutionShape& shape, const Tile& tile,
                            int multiprocessors);

struct Operands {
  const float* first;   // x; of the gradients dy
  const float* second;  // w; of the weight gradient x
  const float* bias;    // or nullptr
  float* out;
  bool relu = false;
};

void run(const Plan& plan, int tile, const Operands& operands, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled::small
