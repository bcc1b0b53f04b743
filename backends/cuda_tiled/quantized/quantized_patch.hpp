// The pixels of x that a tile of a convolution's outputs needs, as they lie in shared memory: a patch. For each image
// it has virtual rows, which are input rows with the padding, one image below the other, each row `pitch` pixels. So
// the pixels of a tap lie at the same distance from those of the first for all outputs of the tile.
#pragma once

#include <cstdint>
#include <optional>

#include "common/convolution.hpp"
#include "divider.cuh"

namespace gpunn::cuda_tiled {

struct QuantizedPatch {
  bool pointwise = false;  // filters of one tap need no neighbours: the patch is one pixel for each output of the tile
  int images = 0;
  int pixels = 0;
  Divider pitch, virtual_rows;
  int row_stride = 1, column_stride = 1;  // from an output to the next, in a patch
  int taps = 1;
};

// For tiles of so many outputs, which follow one another. Returns nothing if the patch has more than kMostPatchPixels,
// or the images together more than 2^30.
inline constexpr int64_t kMostPatchPixels = int64_t{1} << 16;
std::optional<QuantizedPatch> quantized_patch(const backends::ConvolutionShape& shape, int outputs);

}  // namespace gpunn::cuda_tiled
