// The plan of a convolution's weight gradient as a matrix product over pixels. dw[(channel, tap), filter] is the sum
// over output pixels of x at the tap, times dy. Blocks share a sum, each with some of the pixels, and a second pass
// adds their parts in the order of the blocks.
#pragma once

#include <cstdint>
#include <optional>

#include "common/convolution.hpp"
#include "conv/fprop/wgmma_fprop.hpp"

namespace gpunn::cuda_tiled::tensor {

struct WgradTile {
  int slots;  // of 64 rows of dw, each a tap of 64 channels, or 64 pairs of a channel and a tap where channels are few
  int filters;
  int pixels;  // of a stage
};

struct WgradPlan {
  FpropPlan geometry;  // of the forward pass
  int taps;
  int plane;             // floats of a channel's patch in a stage
  int units;             // copies of it
  int patch_channels;    // of a block's patch
  int channel_tiles;     // blocks along the channels
  int row_tiles;         // blocks along the channels and taps
  int flat;              // rows are pairs of a channel and a tap, in the order of dw
  int several_channels;  // a single tap: the slots are channels
  int filter_tiles;
  int filter_pitch;  // floats of a row of the partial sums
  int chunks;        // stages over all pixels
  int splits;
  int stages;

  constexpr int64_t part_size() const { return int64_t{geometry.inputs} * taps * filter_pitch; }
};

int shared_bytes(const WgradPlan& plan, const WgradTile& tile);

// Returns nothing if the kernel does not serve the shape. `blocks`: the number of blocks that the GPU runs at once.
std::optional<WgradPlan> plan_wgrad(const backends::ConvolutionShape& shape, const WgradTile& tile, int shared_limit,
                                    int blocks);

uint64_t workspace_bytes(const WgradPlan& plan);

}  // namespace gpunn::cuda_tiled::tensor
