// Places in patches (quantized_patch.hpp), as the kernels compute them.
#pragma once

#include <algorithm>

#include "quantized/quantized_convolution.hpp"
#include "quantized/quantized_patch.hpp"

namespace gpunn::cuda_tiled {

struct QuantizedPlace {
  int image, row, column;
};

__device__ __forceinline__ QuantizedPlace place_of_output(const QuantizedArguments& a, int pixel) {
  const Divider::Result image = a.output_image(pixel);
  const Divider::Result row = a.output_columns(image.rest);
  return {image.quotient, row.quotient, row.rest};
}

__device__ __forceinline__ int virtual_row_of(const QuantizedPatch& patch, const QuantizedPlace& at) {
  return at.image * static_cast<int>(patch.virtual_rows.by) + at.row * patch.row_stride;
}

// The pixel of x that is pixel `index` of the tile's patch; -1: padding.
__device__ __forceinline__ int source_of(const QuantizedArguments& a, const QuantizedPatch& patch, int first_pixel,
                                         int first_row, int index) {
  int image = 0, row = 0, column = 0;
  if (patch.pointwise) {
    const QuantizedPlace at = place_of_output(a, min(first_pixel + index, a.pixels - 1));
    image = at.image;
    row = at.row * a.row_stride - a.row_pad;
    column = at.column * a.column_stride - a.column_pad;
  } else {
    const Divider::Result place = patch.pitch(index);
    const Divider::Result of_image = patch.virtual_rows(first_row + place.quotient);
    image = of_image.quotient;
    row = of_image.rest - a.row_pad;
    column = place.rest - a.column_pad;
  }
  const bool inside = image < patch.images && static_cast<unsigned>(row) < static_cast<unsigned>(a.rows) &&
                      static_cast<unsigned>(column) < static_cast<unsigned>(a.columns);
  return inside ? (image * a.rows + row) * a.columns + column : -1;
}

// The place in the patch of the first tap of an output of the tile, which begins at first_pixel, in virtual row
// first_row.
__device__ __forceinline__ int place_in_patch(const QuantizedArguments& a, const QuantizedPatch& patch, int first_pixel,
                                              int first_row, int of_tile) {
  if (patch.pointwise) return of_tile;
  const QuantizedPlace at = place_of_output(a, min(first_pixel + of_tile, a.pixels - 1));
  return (virtual_row_of(patch, at) - first_row) * static_cast<int>(patch.pitch.by) + at.column * patch.column_stride;
}

}  // namespace gpunn::cuda_tiled
