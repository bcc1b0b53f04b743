// The last step of a weight gradient: the shares of its sums put together.
#pragma once

#include <cuda_runtime.h>

#include "cuda_common/launch.hpp"

namespace gpunn::cuda_tiled::depthwise {

// dw[i] = the sum of parts[split][i], in the order of the splits.
template <class T>
__global__ void __launch_bounds__(cuda::kThreads) join_parts(const float* parts, T* dw, int64_t size, int splits) {
  const int64_t i = cuda::thread_index();
  if (i >= size) return;
  float sum = 0.0F;
#pragma unroll 8
  for (int split = 0; split < splits; ++split) sum += parts[split * size + i];
  dw[i] = static_cast<T>(sum);
}

template <class T>
void join(const float* parts, T* dw, int64_t size, int splits, cudaStream_t stream) {
  cuda::launch(join_parts<T>, cuda::thread_each(size), stream, parts, dw, size, splits);
}

}  // namespace gpunn::cuda_tiled::depthwise
