// Which rows of the matrix [pixels, channels] a slab has.
#pragma once

#include <cstdint>

#include "divider.cuh"

namespace gpunn::cuda_tiled {

// Of each image slab after slab, each of so many pixels, counted with a gap behind every row of the image. Without gaps
// and for all images together: so many rows each, the last slab those that are left.
struct SlabRows {
  Divider image_slabs = {};  // slabs of an image
  int pixels = 1;            // of a slab
  Divider pitch = {};        // pixels of an image's row with its gap
  int width = 1;             // without
  int64_t image_rows = 0;

  // How many rows the slabs before this one have, and more behind the last slab.
  __host__ __device__ __forceinline__ int64_t before(int slab) const {
    const Divider::Result image = image_slabs(slab);
    const Divider::Result row = pitch(image.rest * pixels);
    const int64_t of_image = int64_t{row.quotient} * width + (row.rest < width ? row.rest : width);
    return image.quotient * image_rows + (of_image < image_rows ? of_image : image_rows);
  }
};

// Of all images together.
inline SlabRows equal_slabs(int64_t rows, int slab_rows) {
  constexpr int kAll = 0x7FFFFFFF;
  return {.image_slabs = Divider(kAll), .pixels = slab_rows, .pitch = Divider(kAll), .width = kAll, .image_rows = rows};
}

}  // namespace gpunn::cuda_tiled
