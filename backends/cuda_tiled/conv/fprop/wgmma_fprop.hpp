// The plan of a convolution's forward pass, or of its data gradient, as an fprop: each output pixel is a sum over taps
// of input pixels, with one filter matrix a tap. A data gradient of stride s is s * s of these, one for each phase
// of the output's rows and columns, and none of them multiplies the zeros between the strides.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "common/convolution.hpp"

namespace gpunn::cuda_tiled::tensor {

inline constexpr int kMaxTaps = 25;
inline constexpr int kMaxPhases = 4;
inline constexpr int kMostPatchWords = 1 << 16;  // of a channel; shared memory holds less

// The outputs (first_row + p * row_step, first_column + q * column_step) of every image. What a block needs of a
// channel is a patch: for each image its virtual rows, which are input rows with the padding, one image below the
// other, each row `pitch` floats long. Where the stride is 2 and rows are copied by words, a patch's row holds the even
// columns first and then the odd ones, so that neighbouring outputs read neighbouring words.
struct FpropPhase {
  int rows, columns;            // outputs of an image
  int first_row, first_column;  // of the output tensor
  int top, left;                // virtual row v is input row v * input_row_step - top, and so for columns
  int virtual_rows, virtual_columns;
  int pitch;
  int half;    // where the odd columns begin
  int reach;   // virtual rows that one output row needs
  int vector;  // words are copied by fours: input column 0 is word `lead` of each row, and padding is never written
  int lead;
  int shift;         // word of virtual column 0
  int units;         // copies of a channel's patch
  int column_scale;  // words from an output column to the next
  int padded;        // some words of the patch are zeros that no copy writes
  int plane;         // floats of a channel's patch
  int taps;
  int tap_groups;  // a stage of the pipeline takes `steps` taps of 8 channels, or all taps of several times 8
  int stage_channels;
  int chunks;                             // stages in all
  int interleaved;                        // images of 16 outputs: neighbouring lanes take rows of two images
  std::array<int, kMaxTaps> tap;          // index in the filter
  std::array<int, kMaxTaps> step_offset;  // floats in the patch, of step s of tap group g at g * steps + s
  int64_t packed;                         // floats of the packed filters before this phase's
};

struct FpropPlan {
  int batch;
  int inputs, outputs;  // channels
  int input_rows, input_columns;
  int output_rows, output_columns;
  int input_row_step, input_column_step;
  int row_step, column_step;      // of the outputs
  int row_stride, column_stride;  // virtual rows from one output row to the next
  int steps;                      // products of 8 channels a stage
  int phases;
  int splits;  // blocks that share a tile's sum
  int stages;
  int patch;      // floats of a stage's patch, the largest phase's
  int gaps;       // some outputs are in no phase: no tap reaches them, and they are zeros
  bool backward;  // the filter's roles of inputs and outputs are exchanged
  std::array<FpropPhase, kMaxPhases> phase;
  int64_t packed;   // floats of the packed filters
  int filter_taps;  // of the whole filter

  constexpr int64_t output_size() const { return int64_t{batch} * outputs * output_rows * output_columns; }
};

struct FpropTile {
  int pixels;
  int filters;
};

// The largest number of virtual rows that a tile of `tile` outputs needs. Tiles repeat after as many tiles as an image
// has outputs.
int patch_rows(const FpropPhase& phase, int batch, int row_stride, int tile);

// Whether a channel's patch of `rows` rows may fit.
bool patch_fits(const FpropPlan& plan, const FpropPhase& phase, int rows);

// The copies and words of a channel's patch of `rows` rows, before the words are rounded up.
int patch_units(const FpropPlan& plan, const FpropPhase& phase, int rows);
int patch_words(const FpropPhase& phase, int rows);

// Bytes of shared memory of a block of `tile` with the plan's stages.
int shared_bytes(const FpropPlan& plan, const FpropTile& tile);

// The only phase of a forward pass, without channels and stages.
std::optional<FpropPlan> fprop_geometry(const backends::ConvolutionShape& shape, const FpropTile& tile);

// Returns nothing if the kernel does not serve the shape: groups, too many taps, too large strides, or too large
// patches.
std::optional<FpropPlan> plan_fprop(const backends::ConvolutionShape& shape, const FpropTile& tile, int shared_limit);
std::optional<FpropPlan> plan_dgrad(const backends::ConvolutionShape& shape, const FpropTile& tile, int shared_limit);

uint64_t workspace_bytes(const FpropPlan& plan);

}  // namespace gpunn::cuda_tiled::tensor
