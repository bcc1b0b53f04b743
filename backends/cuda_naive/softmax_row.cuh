// The reduction shared by softmax, its logarithm and the cross-entropy: the largest element of a row and the sum of the
// exponentials.
#pragma once

#include <cmath>
#include <cstdint>

#include "block_tree.cuh"

namespace gpunn::cuda_naive {

struct SoftmaxRow {
  float largest;
  float sum;  // of exp(x - largest), so at least 1 and never an overflow
};

// All threads of the block must call it. The sum is NaN if the row contains a NaN or +infinity, or consists of
// -infinity only.
inline __device__ SoftmaxRow softmax_row(const float* x, int64_t columns) {
  float largest = -INFINITY;
  for (int64_t c = threadIdx.x; c < columns; c += blockDim.x) largest = fmaxf(largest, x[c]);
  largest = block_tree(largest, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0.0F;
  for (int64_t c = threadIdx.x; c < columns; c += blockDim.x) sum += expf(x[c] - largest);
  return {largest, block_sum(sum)};
}

}  // namespace gpunn::cuda_naive
