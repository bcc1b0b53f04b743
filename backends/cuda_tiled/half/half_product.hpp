// A product of matrices of bf16 or f16 on Hopper's tensor cores, as its kernel (half_kernel.cuh) gets it. MATMUL and
// the three passes of a channels-last convolution are all of this form:
//
//   y'[row, column] = sum over k of a'[row, k] b'[column, k]
//
//                    rows      columns          k                  a'                     b'
//   MATMUL           m         n                k                  a                      b
//   forward          pixels    filters          taps x channels    windows of x           filters
//   data gradient    pixels    channels         taps x filters     windows of dy          filters, transposed
//   weight gradient  filters   taps x channels  pixels             dy, transposed         windows of x, transposed
//
// Windows never lie in memory: the tensor memory accelerator (TMA) in its im2col mode gathers their pixels, with zeros
// for the padding. A data gradient of stride s is several products, called phases, one for each position of an output
// pixel modulo s, so that no zero between the strides is multiplied.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <cuda.h>
#include <vector_types.h>

#include "divider.cuh"
#include "epilogue.cuh"

namespace gpunn::cuda_tiled {

enum class HalfElement : uint8_t { kBf16, kF16 };

// The work on the sums besides bias and ReLU: computing the statistics of their columns, adding a tensor of y's shape,
// or beginning the gradient of a batch norm.
enum class HalfEnding : uint8_t { kPlain, kStatistics, kResidual, kGradient };

// The endings that a tile has kernels for: kPlain and kResidual alone, kStatistics too, or all.
enum class HalfEndings : uint8_t { kPlain, kStatistics, kAll };

// y' in tiles of rows x columns, `stages` blocks of K in flight, `blocks` of threads a multiprocessor.
struct HalfTile {
  int rows = 0;
  int columns = 0;
  int stages = 0;
  int blocks = 1;
  // TMA stores y in pieces of kPieceRows rows, of which a warp has so many on their way to memory at a time. With none,
  // threads store y, as they always do for HalfStatistics and HalfGradient: that ends sooner where there is no next
  // tile.
  int pieces = 0;
  // The tiles of a cluster of blocks lie one below the other and have the same b', or side by side and have the same
  // a'. Each block fetches its share of that and multicasts it to all.
  int cluster = 1;
  bool side_by_side = false;
  // The consumers of a block, a warpgroup each, share out a tile's rows, or two take turns: while one stores its tile
  // the other multiplies.
  int consumers = 2;
  bool turns = false;
  HalfEndings endings = HalfEndings::kPlain;

  constexpr int cluster_rows() const { return side_by_side ? rows : rows * cluster; }
  constexpr int cluster_columns() const { return side_by_side ? columns * cluster : columns; }
  // Of a' and of b', that each block fetches.
  constexpr int rows_fetched() const { return side_by_side ? rows / cluster : rows; }
  constexpr int columns_fetched() const { return side_by_side ? columns : columns / cluster; }
};

inline constexpr int kPieceRows = 16;  // of y', those of a warp

// First the one that is nowhere far behind, which runs where nothing may be timed. The tile of eight stages is for
// problems of few tiles, each of which then has a multiprocessor, that of 192 rows for those that then fill the GPU in
// whole waves. Tiles that were never the fastest with statistics or a gradient behind them have no kernels for those: a
// gradient loads three more tensors into registers, and larger tiles have none left for them.
inline constexpr std::array<HalfTile, 11> kHalfTiles = {
    {{.rows = 128, .columns = 128, .stages = 3, .blocks = 2, .endings = HalfEndings::kStatistics},
     {.rows = 128, .columns = 256, .stages = 4, .endings = HalfEndings::kStatistics},
     {.rows = 256, .columns = 128, .stages = 4},
     {.rows = 128, .columns = 192, .stages = 5, .endings = HalfEndings::kAll},
     {.rows = 128, .columns = 64, .stages = 4, .blocks = 2, .endings = HalfEndings::kStatistics},
     {.rows = 128, .columns = 64, .stages = 8, .endings = HalfEndings::kAll},
     {.rows = 128, .columns = 256, .stages = 4, .pieces = 2},
     {.rows = 128, .columns = 256, .stages = 4, .pieces = 2, .cluster = 2},
     {.rows = 128, .columns = 128, .stages = 6, .pieces = 2, .turns = true},
     {.rows = 128, .columns = 128, .stages = 6, .pieces = 2, .cluster = 2, .side_by_side = true, .turns = true},
     {.rows = 192,
      .columns = 128,
      .stages = 5,
      .pieces = 1,
      .cluster = 2,
      .side_by_side = true,
      .consumers = 3,
      .endings = HalfEndings::kStatistics}}};
// Variants are named by their tiles: gemm:half_128x128, conv:half_128x128.
inline constexpr std::array<std::string_view, kHalfTiles.size()> kHalfTileNames = {
    "128x128",     "128x256",      "256x128",      "128x192",       "128x64",
    "128x64_deep", "128x256_bulk", "128x256_pair", "128x128_turns", "128x128_turns_pair",
    "192x128_pair"};

// The index of a tile; kHalfTiles.size() if there is none of that name.
constexpr int half_tile(std::string_view name) {
  return static_cast<int>(std::ranges::find(kHalfTileNames, name) - kHalfTileNames.begin());
}

constexpr HalfEndings endings_of(int tile) { return kHalfTiles[static_cast<std::size_t>(tile)].endings; }

inline constexpr int kHalfBlockK = 64;  // of K, a stage: 128 bytes of a line
inline constexpr int kMostPhases = 4;

// The taps of a filter's rows, or columns, that a phase takes: first + i * step, whose window begins i * offset_step
// pixels behind that of i = 0.
struct TapAxis {
  int count = 1;
  int first = 0;
  int step = 0;
  int offset_step = 0;
};

// The windows of all images in their order, row by row: window (i, j) begins at the pixel
// (top + i * row_stride, left + j * column_stride), which may lie in the padding.
struct Windows {
  Divider image;    // windows of an image
  Divider columns;  // of a row of windows
  int top = 0;
  int left = 0;
  int row_stride = 1;
  int column_stride = 1;
};

// The position in y of a row of y', in elements: one pitch behind the row before, or scattered if rows are the pixels
// (i, j) of a phase.
struct RowPlaces {
  bool scattered = false;
  Divider image;
  Divider columns;
  int64_t first = 0;
  int64_t image_pitch = 0;
  int64_t row_pitch = 0;  // the pitch of rows of y' that are not scattered
  int64_t column_pitch = 0;
};

struct HalfPhase {
  Windows windows;  // of a', or of b' for a weight gradient
  TapAxis tap_rows;
  TapAxis tap_columns;
  RowPlaces places;
  int rows = 0;
  int row_tiles = 0;  // of a cluster, as everywhere here
  int blocks = 0;     // of K
  // Tiles in bands of some rows, down a band first: those under way at a time share what they read of a' and b'.
  int band = 1;  // tiles
  Divider band_tiles;
  Divider band_height;
  Divider last_height;  // of the last band
  // The first tiles are computed whole. Of the others K is split: all parts of a tile leave their sums in memory.
  int whole_tiles = 0;
  Divider split_tiles;
  int items = 0;       // tiles and parts of tiles
  int first_slab = 0;  // of HalfGradient; those of the phases before come first
};

// Statistics of each column of y as stored: the mean and the sum of squared differences from it, for every kSlabRows
// rows, which a warpgroup computes together. For forward convolutions.
struct HalfStatistics {
  float2* slabs = nullptr;          // [slabs, columns]; NULL: they are not wanted
  const int32_t* images = nullptr;  // so many images enter; NULL: all of them
  int pixels = 1;                   // rows of an image
};

inline constexpr int kSlabRows = 64;

// What is behind a data gradient: the sum with another gradient, the gradient of a ReLU and the sums that the gradient
// of batch norm begins with. y becomes the gradient of what the ReLU reads. All tensors are laid out as y, whose
// columns are whole eights. For data gradients whose K is not split.
struct HalfGradient {
  const void* more = nullptr;    // added, and rounded once more; NULL: nothing is
  const void* relu_y = nullptr;  // what the ReLU gave
  const void* x = nullptr;       // what the batch norm reads
  const float* mean = nullptr;   // of x, by column
  // By column, for every kSlabRows rows of a phase: the sums of y and of y (x - mean). NULL: none of all this.
  float2* slabs = nullptr;
  const int32_t* images = nullptr;  // so many images enter the sums; NULL: all of them
};

struct HalfProduct {
  std::array<CUtensorMap, kMostPhases> a{};
  CUtensorMap b{};
  std::array<HalfPhase, kMostPhases> phase;
  int phases = 1;
  int splits = 1;           // parts of K of a split tile
  int blocks_of_split = 0;  // of K
  bool image_a = false;     // a' consists of windows
  bool image_b = false;     // b' does
  int filter_columns = 1;
  Divider channel_blocks;  // blocks of 64 in a tap: of K, or of the columns where image_b is set
  int columns = 0;         // of y', whole blocks of 64 where image_b is set
  int column_tiles = 0;
  int channels = 0;  // columns of y in a tap, where image_b is set
  void* y = nullptr;
  CUtensorMap y_map{};     // of y, if `bulk`
  bool bulk = false;       // TMA stores y
  bool vectors = false;    // rows of y, and its columns' blocks of 64, are multiples of 16 bytes
  float* parts = nullptr;  // a tile of sums for each part
  Epilogue epilogue;
  const void* residual = nullptr;  // laid out as y; added before the ReLU
  HalfStatistics statistics;
  HalfGradient gradient;
};

}  // namespace gpunn::cuda_tiled
