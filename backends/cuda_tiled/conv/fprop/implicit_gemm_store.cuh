// Stores the results of an implicit GEMM: maps them to the pixels of a class.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "conv/fprop/implicit_gemm_entries.cuh"
#include "conv/shares.hpp"

namespace gpunn::cuda_tiled::conv {

// A pixel of a class.
struct Pixel {
  int image;
  int row;
  int column;

  __device__ Pixel(int index, int rows, int columns)
      : image(index / (rows * columns)), row(index / columns % rows), column(index % columns) {}
};

// Writes the pixel of the first class, and zeros for the others up to the next.
__device__ __forceinline__ void write_cell(float* element, float value, const Plan& plan, const Pixel& pixel) {
  const int rows = min(plan.rows.stride, plan.rows.results - pixel.row * plan.rows.stride);
  const int columns = min(plan.columns.stride, plan.columns.results - pixel.column * plan.columns.stride);
  for (int i = 0; i < rows; ++i) {
    float* row = element + i * plan.columns.results;
    if (plan.columns.stride == 2 && plan.columns.results % 2 == 0) {
      *reinterpret_cast<float2*>(row) = make_float2(i == 0 ? value : 0.0F, 0.0F);
    } else {
      for (int j = 0; j < columns; ++j) row[j] = i == 0 && j == 0 ? value : 0.0F;
    }
  }
}

// Stores a block's sums if four neighbouring pixels are contiguous in one image.
template <class Shape, class Place>
__device__ __forceinline__ void store_fours(const typename Shape::Sums& sums, const Place& place, const SharesEnd& end,
                                            float* y, const Plan& plan, int group, int first_result, int first_pixel,
                                            int pixels) {
  const int plane = plan.rows.results * plan.columns.results;
#pragma unroll
  for (int j = 0; j < Shape::kThreadColumns; j += 4) {
    const int index = first_pixel + place.column(j);
    if (index >= pixels) continue;
    const int64_t image = static_cast<int64_t>(index / plane) * plan.groups + group;
    float* to = y + image * plan.results * plane + index % plane;
#pragma unroll
    for (int i = 0; i < Shape::kThreadRows; ++i) {
      const int result = first_result + place.row(i);
      if (result >= plan.results) continue;
      const float bias = end.epilogue.bias != nullptr ? end.epilogue.bias[group * plan.results + result] : 0.0F;
      float values[4];
#pragma unroll
      for (int l = 0; l < 4; ++l) {
        values[l] = finish(end.epilogue, sums[i][j + l], bias);
      }
      *reinterpret_cast<float4*>(to + static_cast<int64_t>(result) * plane) =
          make_float4(values[0], values[1], values[2], values[3]);
    }
  }
}

}  // namespace gpunn::cuda_tiled::conv
