// The last step of a weight gradient: adds the partial sums.
#pragma once

#include <cuda_runtime.h>

#include "cuda_common/launch.hpp"

namespace gpunn::cuda_tiled::depthwise {

inline constexpr int kJoinedSums = 32;   // of a block
inline constexpr int kJoiningRows = 16;  // threads that share the splits of a sum

// dw[i] = the sum of parts[split][i]. Each row of threads adds its splits in order, and then the rows are added in
// order.
template <class T>
__global__ void __launch_bounds__(kJoinedSums* kJoiningRows)
    join_parts(const float* __restrict__ parts, T* __restrict__ dw, int64_t size, int splits) {
  __shared__ float shared[kJoiningRows][kJoinedSums];
  const int64_t i = int64_t{blockIdx.x} * kJoinedSums + threadIdx.x;
  float sum = 0.0F;
  if (i < size) {
#pragma unroll 8
    for (int split = static_cast<int>(threadIdx.y); split < splits; split += kJoiningRows) {
      sum += parts[split * size + i];
    }
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || i >= size) return;
#pragma unroll
  for (int row = 1; row < kJoiningRows; ++row) sum += shared[row][threadIdx.x];
  dw[i] = static_cast<T>(sum);
}

template <class T>
void join(const float* parts, T* dw, int64_t size, int splits, cudaStream_t stream) {
  const cuda::Launch blocks{dim3(cuda::grid_size(size, kJoinedSums)), dim3(kJoinedSums, kJoiningRows)};
  cuda::launch(join_parts<T>, blocks, stream, parts, dw, size, splits);
}

}  // namespace gpunn::cuda_tiled::depthwise
