// Which of a window's elements is its maximum, as MAX_POOL2D has it.
#pragma once

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

// Whether b takes the maximum from a, which comes before it: a NaN wins, and of equals the first.
__device__ __forceinline__ bool beats(float b, float a) { return a == a && (b > a || b != b); }

}  // namespace gpunn::cuda_tiled
