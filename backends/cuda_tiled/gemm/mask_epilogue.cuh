// The device functions of the epilogue of masked.hpp: the mask and the column sums.
#pragma once

#include <cstdint>

namespace gpunn::cuda_tiled {

struct MaskEpilogue {
  const float* y = nullptr;      // [m, n], of the ReLU
  float* parts = nullptr;        // [parts, n], sums of columns of some rows each
  float* sums = nullptr;         // [n]
  unsigned* counters = nullptr;  // one for the columns of a tile
};

// The mask of RELU_BACKWARD, also for NaNs.
__device__ __forceinline__ float masked(float gradient, float y) { return y > 0.0F ? gradient : 0.0F; }

__device__ __forceinline__ float4 masked(const float4& gradient, const float4& y) {
  return make_float4(masked(gradient.x, y.x), masked(gradient.y, y.y), masked(gradient.z, y.z),
                     masked(gradient.w, y.w));
}

// The sum of the parts of a column, which other blocks wrote, in their order.
__device__ __forceinline__ float sum_of_parts(const float* parts, int count, int n, int column) {
  float sum = 0.0F;
#pragma unroll 8
  for (int part = 0; part < count; ++part) sum += __ldcg(parts + int64_t{part} * n + column);
  return sum;
}

}  // namespace gpunn::cuda_tiled
