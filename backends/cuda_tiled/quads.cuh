// Sums of groups of four neighbouring floats.
#pragma once

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

__device__ __forceinline__ float4 operator+(const float4& x, const float4& y) {
  return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

}  // namespace gpunn::cuda_tiled
