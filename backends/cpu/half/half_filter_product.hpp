// Backward to the filter of channels-last bf16 images, as ImageFilterProduct has it in f32: dw = dy^T x. Sums run over
// pixels, so dy is transposed first, and x is laid out in pairs of pixels. Where neighbouring outputs see neighbouring
// pixels, both are padded (padded_pixels.hpp), and a tap is an offset in the pairs, of which there are two sets: those
// that begin at even pixels, and those at odd ones. Elsewhere what each output sees is copied side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "convolution/image_rows.hpp"
#include "half/half_tile.hpp"
#include "half/padded_pixels.hpp"

namespace gpunn::cpu {

class HalfFilterProduct {
 public:
  HalfFilterProduct(const ConvolutionShape& shape, int threads, const HalfTileKernels& kernels);

  double workspace_bytes() const;
  void run(const BFloat16* dy, const BFloat16* x, BFloat16* dw, void* workspace) const;

 private:
  // The taps and channels of x that a task has.
  struct Block {
    int64_t tap;
    int64_t taps;
    int64_t channel;
    int64_t channels;
  };
  // Of padded pixels, those that begin with even ones and with odd ones, [pair][channel][pixel of the pair]; of
  // gathered rows, [panel of columns][pair][column][row of the pair].
  struct Pairs {
    const BFloat16* even;
    const BFloat16* odd;
  };

  void plan_padded();
  void plan_gathered();
  Block block(int64_t number) const;
  int64_t pixels_seen() const;    // of x, by the pixels that are multiplied at once
  int64_t right_columns() const;  // of a pixel of x, or of what is gathered for one
  int64_t transposed_numbers() const;
  int64_t scratch_numbers() const;
  void transpose(const BFloat16* dy, BFloat16* to, BFloat16* scratch) const;
  Pairs pair_up(const Block& block, const BFloat16* x, int64_t group, int64_t first, int64_t count,
                BFloat16* scratch) const;
  const BFloat16* column_tile(const Pairs& pairs, int64_t tile) const;
  void add_chunk(const BFloat16* dy, const BFloat16* x, int64_t group, int64_t chunk, int64_t number, float* sums,
                 BFloat16* scratch) const;
  void put_filter(const float* sums, int64_t group, int64_t number, int64_t first, BFloat16* dw) const;

  const HalfTileKernels* kernels_;
  ConvolutionShape shape_;
  int threads_;
  GroupedImages x_;
  GroupedImages dy_;
  TargetClass targets_;
  std::optional<PaddedPixels> padded_;
  int64_t pixels_ = 0;          // that sums run over, gaps included
  int64_t dy_rows_;             // of a step: output channels, up to whole tiles
  int64_t dy_stride_ = 0;       // of a channel's transposed pixels, those of a step
  int64_t block_taps_ = 0;      // of a task; 1 where block_channels_ are not all, if nothing is padded
  int64_t block_channels_ = 0;  // of a task
  int64_t tap_columns_ = 0;     // of a tap, block_channels_ or more
  int64_t channel_blocks_ = 0;
  int64_t blocks_ = 0;
  int64_t depth_ = 0;           // pixels that are multiplied at once
  std::vector<int64_t> steps_;  // of a tile, through them
  int64_t chunks_ = 0;
  int64_t block_panels_ = 0;  // of HalfTile::kColumns columns
  int64_t panel_floats_ = 0;  // sums of all output channels of a group in a panel's columns
  int64_t block_floats_ = 0;  // of all groups
};

}  // namespace gpunn::cpu
