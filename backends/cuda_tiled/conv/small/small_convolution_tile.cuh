// The compile-time description of an instance of small_convolution_kernel.cuh: the layout of its tiles in shared
// memory, its number of threads, and the work of each block and thread.
#pragma once

#include <cstdint>

#include "conv/small/small_convolution.hpp"
#include "conv/small/small_convolution_parts.cuh"

namespace gpunn::cuda_tiled::small {

inline constexpr int kStages = 4;

// The pitch of rows of terms, with which ldmatrix reads all banks.
constexpr int term_pitch(int terms) { return terms + 4; }

// Terms by columns: 4 terms by 8 columns lie in 32 banks.
constexpr int column_pitch(int columns) { return columns + 8; }

constexpr int threads_of(const Tile& tile) { return tile.rows * tile.columns * tile.groups / 32; }

constexpr int first_words(ConvolutionPass pass, const Tile& tile) {
  return pass == ConvolutionPass::backward_data ? tile.terms * column_pitch(tile.rows)
                                                : tile.rows * term_pitch(tile.terms);
}

constexpr int second_words(ConvolutionPass pass, const Tile& tile) {
  return pass == ConvolutionPass::backward_filter ? tile.columns * term_pitch(tile.terms)
                                                  : tile.terms * column_pitch(tile.columns);
}

constexpr int shared_bytes(ConvolutionPass pass, const Tile& tile) {
  const int stages = kStages * (first_words(pass, tile) + second_words(pass, tile));
  const int sums = tile.rows * column_pitch(tile.columns);
  return (stages > sums ? stages : sums) * 4;
}

struct Arguments {
  const float* first;
  const float* second;
  const float* bias;
  float* out;
  bool relu;
};

// The constants that follow from the kernel's template parameters.
template <ConvolutionPass kPass, Source kSource_, Tile kTile>
struct Traits {
  static constexpr Source kSource = kSource_;
  static constexpr int kRows = kTile.rows;
  static constexpr int kColumns = kTile.columns;
  static constexpr int kTerms = kTile.terms;
  static constexpr int kGroups = kTile.groups;
  static constexpr int kThreads = threads_of(kTile);
  static constexpr int kWarps = kThreads / 32;

  static constexpr bool kFprop = kPass == ConvolutionPass::forward;
  static constexpr bool kDgrad = kPass == ConvolutionPass::backward_data;
  static constexpr bool kWgrad = kPass == ConvolutionPass::backward_filter;
  static constexpr bool kVectors = kSource == Source::kVectors;
  static constexpr bool kTaps = kSource == Source::kTaps;
  static constexpr bool kStrided = kDgrad && !kTaps;  // pixels of dy, whose stride is that of the outputs

  // A stage is the first operand's tile and the second's; sums lie as the second operand does.
  static constexpr int kFirst = first_words(kPass, kTile);
  static constexpr int kStage = kFirst + second_words(kPass, kTile);
  static constexpr int kPitch = column_pitch(kColumns);
  static constexpr int kTermPitch = term_pitch(kTerms);
};

#ifdef GPUNN_CONV_TENSOR_CORES

// A thread, and its block's share: a tile of the result, and as many chunks of its terms as the cluster leaves it.
struct Place {
  int thread, lane, warp;
  int rank;  // of the block in its cluster
  int first_row, first_column;
  int rows_left, columns_left;  // of the result, from the tile's first
  int first_chunk, chunks;
};

template <class T>
__device__ __forceinline__ Place place_of(const Plan& plan) {
  Place place;
  place.thread = static_cast<int>(threadIdx.x);
  place.lane = place.thread % 32;
  place.warp = __shfl_sync(0xffffffff, place.thread / 32, 0);  // which tells the compiler that a warp has but one
  const int block = static_cast<int>(blockIdx.x);
  const int tile = block / plan.splits;
  place.rank = block - tile * plan.splits;
  const int column_tile = tile / plan.row_tiles;
  place.first_row = (tile - column_tile * plan.row_tiles) * T::kRows;
  place.first_column = column_tile * T::kColumns;
  place.first_chunk = plan.chunks * place.rank / plan.splits;
  place.chunks = plan.chunks * (place.rank + 1) / plan.splits - place.first_chunk;
  place.rows_left = plan.rows - place.first_row;
  place.columns_left = plan.columns - place.first_column;
  return place;
}

#endif

}  // namespace gpunn::cuda_tiled::small
