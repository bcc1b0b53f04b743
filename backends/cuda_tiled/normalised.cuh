// A number that batch norm gives. Gradients compute it anew in place of reading what the ReLU behind made of it: its
// sign has to be the same.
#pragma once

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

// `factor` is rstd gamma.
__device__ __forceinline__ float normalised(float x, float mean, float factor, float beta) {
  return __fmaf_rn(x - mean, factor, beta);
}

}  // namespace gpunn::cuda_tiled
