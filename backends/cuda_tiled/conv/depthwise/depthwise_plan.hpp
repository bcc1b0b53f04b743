// Plans how the sliding-window kernels divide the work among thread blocks and threads.
#pragma once

#include <cstdint>

#include "conv/depthwise/depthwise.hpp"
#include "divider.cuh"

namespace gpunn::cuda_tiled::depthwise {

// The sizes of x and y, for one square filter a channel and one stride.
struct Sizes {
  int batch = 0;
  int channels = 0;
  int x_rows = 0, x_columns = 0;
  int y_rows = 0, y_columns = 0;
  int pad_rows = 0, pad_columns = 0;
};

Sizes sizes_of(const backends::ConvolutionShape& shape);

// Why no sliding-window kernel serves the filter, in either layout; empty if there is one.
std::string sliding_refuses(const DepthwiseProblem& problem);

// The amount that the padding lacks to a multiple of the stride.
int shift_of(const backends::ConvolutionShape& shape);

// The extents that the threads of a pass divide: rows and columns of y, or groups of stride x stride pixels of dx.
struct Extents {
  int rows = 0;
  int columns = 0;
};

Extents extents_of(const DepthwiseProblem& problem);

// Packed images. A block has a tile: `planes` images of one channel, or `rows` rows of one such image. Each thread has
// one column and `chunk` rows of it.
struct PackedPlan {
  int planes = 1;
  int rows = 1;
  int chunk = 1;
  int chunks = 1;  // of a tile
  int pitch = 0;   // elements between two planes in shared memory: of x, or of dy for its gradient
  int threads = 32;
  int stage = 0;    // elements of a tile in shared memory, with room to align it
  int x_stage = 0;  // of them those of x, of a weight gradient
  int splits = 1;   // of the images, of a weight gradient
  int64_t blocks = 0;
  uint32_t shared_bytes = 0;
  Divider by_columns, by_planes, by_tiles, by_channels;
  Divider by_channel_blocks;  // of a weight gradient
  Divider pieces;             // of 16 bytes, of a plane that lies with a gap behind it
};

PackedPlan packed_plan(const DepthwiseProblem& problem);

// Channels-last images. A thread has `width` channels of `columns` columns, and `chunk` rows of them, in `images`
// images. `lanes` neighbouring threads have neighbouring channels.
struct ChannelsLastPlan {
  int lanes = 1;
  int chunk = 1;
  int images = 1;
  int splits = 1;  // of a weight gradient
  int depth = 1;   // threads of a block below each other, of a weight gradient
  int64_t tasks = 0;
  Divider by_lanes, by_columns, by_chunks, by_images;
};

inline constexpr int kChannelsLastThreads = 128;

// The channels and columns of a thread.
template <int taps>
inline constexpr int kWidth = taps == 3 ? 4 : 2;
constexpr int width_of(int64_t taps) { return taps == 3 ? 4 : 2; }
constexpr int columns_of(backends::ConvolutionPass pass, int64_t stride) {
  return pass != backends::ConvolutionPass::backward_filter && stride == 1 ? 2 : 1;
}

ChannelsLastPlan channels_last_plan(const DepthwiseProblem& problem);

}  // namespace gpunn::cuda_tiled::depthwise
