// The comparison that determines a window's maximum in MAX_POOL2D.
#pragma once

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

// Whether b replaces the earlier element a as the maximum: a NaN wins, and the first of equal elements.
__device__ __forceinline__ bool beats(float b, float a) { return a == a && (b > a || b != b); }

}  // namespace gpunn::cuda_tiled
