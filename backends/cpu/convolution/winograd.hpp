// Winograd's convolution of channels-last images, for 3x3 filters at stride and dilation 1: a quarter of the direct
// convolution's products. A ResNet-18 step on two cores takes 0.6 of the time that it took with packed images.
#pragma once

#include <cstdint>

#include "common/convolution.hpp"
#include "convolution/constant_filter.hpp"
#include "convolution/epilogue.hpp"
#include "simd/gemm.hpp"
#include "simd/images/winograd.hpp"

namespace gpunn::cpu {

using backends::ConvolutionAxis;
using backends::ConvolutionPass;
using backends::ConvolutionShape;

// Whether this is the faster way, of one group of enough channels and of tiles that the images fill.
bool suits_winograd(const ConvolutionShape& shape, ConvolutionPass pass);

// Tiles of 4x4 pixels of a channel, numbered through the batch.
struct WinogradTiling {
  int64_t rows;  // of tiles in an image
  int64_t columns;
  int64_t tiles;  // of all images

  WinogradTiling(int64_t batch, int64_t height, int64_t width);
};

// Images of so many channels, and where a tile lies in them.
struct WinogradImages {
  int64_t height;
  int64_t width;
  int64_t channels;
  int64_t margin;  // the tile's first row and column are 4 * its index less that
  int size;        // pixels along a tile's side

  // The offset of the tile's first pixel, which may be outside the image.
  int64_t locate(const WinogradTiling& tiling, int64_t tile, WinogradTile& where) const;
};

// Forward, and backward to the data. Each task transforms a block of tiles, which stays in the second-level cache with
// its products, and multiplies it with the points of the filter.
class WinogradProduct {
 public:
  WinogradProduct(const ConvolutionShape& shape, ConvolutionPass pass, int threads);

  // In floats. As a double, for a shape whose scratch would overflow an integer.
  double workspace_floats() const;

  // The points of the filter as run() reads them. Forward they depend on the layout alone.
  FilterLayout filter_layout() const;
  int64_t packed_floats() const;
  void pack_filter(const float* filter, float* points, float* scratch) const;

  // source and target are x and y forward, dy and dx backward. scratch: the workspace behind the filter's points.
  void run(const float* source, const float* filter_points, const ConvolutionEpilogue& epilogue, float* target,
           float* scratch) const;

 private:
  const GemmKernels* products_;
  const WinogradKernels* transforms_;
  bool forward_;
  int threads_;
  WinogradImages source_;
  WinogradImages target_;
  WinogradTiling tiling_;
  int64_t panel_;  // target channels that are multiplied at once
  int64_t panels_;
  int64_t block_tiles_;  // in a task
  int64_t blocks_;
  int64_t splits_ = 1;  // of the panels
  int64_t rows_at_once_;
  int64_t tile_floats_;  // from one tile's channels to the next one's, of a point
};

// Backward to the filter: the points of x and of dy, chunk by chunk of the tiles, multiplied and summed.
class WinogradFilter {
 public:
  WinogradFilter(const ConvolutionShape& shape, int threads);

  double workspace_floats() const;
  void run(const float* dy, const float* x, float* dw, float* workspace) const;

 private:
  // Points of images: [point][panel of channels][tile of the chunk][channel of the panel].
  int64_t points_floats(const WinogradImages& images) const;
  void transform(const WinogradImages& images, const float* data, int64_t first, int64_t tiles, float* points) const;
  void multiply(const float* x, const float* dy, int64_t tiles, bool accumulate, float* sums) const;

  const GemmKernels* products_;
  const WinogradKernels* transforms_;
  int threads_;
  WinogradImages x_;
  WinogradImages dy_;
  WinogradTiling tiling_;
  int64_t panel_;
  int64_t chunk_tiles_;
  int64_t sums_point_;  // floats from one point's sums [dy channel][x channel] to the next one's
};

}  // namespace gpunn::cpu
