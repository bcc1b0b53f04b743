// How the images of a batch are laid out in the lanes of vectors, block by block, and brought there and back.
#pragma once

#include <cstdint>

#include "convolution/geometry.hpp"
#include "simd/images/convolution.hpp"

namespace gpunn::cpu {

// An item is one strip of target rows of one image; a block is as many items as a vector has lanes. A batch that fills
// its vectors has one strip an image; a small one is cut into strips, so that lanes don't idle.
struct ImageLanes {
  static constexpr int kMostLanes = 16;

  int64_t batch;
  int64_t lanes;
  int64_t strips = 1;
  int64_t strip_targets;  // rows of a strip, a multiple of the step of its classes
  int64_t strip_sources;  // the source rows from one strip's start to the next one's
  int64_t blocks;

  // For targets of a row axis whose classes have this step and this distance between sources.
  ImageLanes(int64_t batch, int64_t lanes, int64_t targets, int64_t target_step, int64_t per_target);

  int64_t image(int64_t item) const { return item / strips; }
  int64_t strip(int64_t item) const { return item % strips; }
  int64_t items() const { return batch * strips; }

  // The source rows, relative to their strip's start, in which any strip has data.
  int64_t lowest_source() const { return -(strips - 1) * strip_sources; }
};

// Planes of one channel in a batch: image n, row r begins at data + n * image + r * width.
template <class T>
struct Planes {
  T* data;
  int64_t image;
  int64_t height;
  int64_t width;
};

// Rows [begin, end) of each strip, counted from its start, go to `to + (row - begin) * to_row`, a vector every
// to_column floats. Strips start strip_rows apart: strip_sources or strip_targets. Rows that an image doesn't have are
// zeros.
void load_rows(const ConvolutionKernels& kernels, const ImageLanes& lanes, int64_t strip_rows, int64_t block,
               const Planes<const float>& planes, int64_t begin, int64_t end, float* to, int64_t to_row,
               int64_t to_column);

// Target rows [begin, end) of each strip, vectors packed one after another, go to the planes, plus bias, through ReLU.
void store_rows(const ConvolutionKernels& kernels, const ImageLanes& lanes, int64_t block, const Planes<float>& planes,
                int64_t begin, int64_t end, const float* from, float bias, bool relu);

}  // namespace gpunn::cpu
