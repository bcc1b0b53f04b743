// Reduction within a thread block: the threads combine one value each into a single result, by a tree in shared memory.
//
// A block reduces a long axis in two stages. First each thread goes through its share of the elements, every
// blockDim.x-th, so that neighbouring threads read neighbouring elements. Then the tree combines the results of the
// threads. Shared memory belongs to the block and lies on the chip: it is some ten times faster to reach than the GPU's
// memory. In each round the lower half of the remaining threads adds the values of the upper half:
//
//     0 1 2 3 4 5 6 7        8 values
//     0+4 1+5 2+6 3+7        4, after one round
//     ...                    1, after log2(8) = 3
//
// The thread numbers alone determine the order of the additions, never the order in which threads arrive. So the
// rounding is the same in every run, unlike with atomicAdd. The next version would do the last five rounds in registers
// (__shfl_down_sync), without shared memory and without waiting for the block's other warps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda_common/launch.hpp"

namespace gpunn::cuda_naive {

inline constexpr unsigned kMostTreeThreads = 1024;  // the most that a block may have

// One thread block for each of n results, each of which combines `length` elements. A block has about one thread an
// element, rounded to a power of two. The kernel must loop, since a grid has at most 2^31 - 1 blocks:
//
//   for (int64_t i = blockIdx.x; i < n; i += gridDim.x) ...
inline cuda::Launch tree_each(int64_t n, int64_t length, unsigned most_threads = cuda::kThreads) {
  unsigned threads = 32;
  while (threads < most_threads && threads < length) threads *= 2;
  return cuda::block_each(std::min<int64_t>(n, INT32_MAX), threads);
}

// Combines the values `mine` of all threads of the block by combine(a, b). All threads must call it, and every thread
// gets the result. blockDim.x must be a power of two.
template <class T, class Combine>
__device__ T block_tree(T mine, const Combine& combine) {
  __shared__ T slots[kMostTreeThreads];
  slots[threadIdx.x] = mine;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();  // what the round before wrote is there
    if (threadIdx.x < half) slots[threadIdx.x] = combine(slots[threadIdx.x], slots[threadIdx.x + half]);
  }
  __syncthreads();
  const T result = slots[0];
  __syncthreads();  // all have read it: the slots may be used again
  return result;
}

template <class T>
__device__ T block_sum(T mine) {
  return block_tree(mine, [](T a, T b) { return a + b; });
}

}  // namespace gpunn::cuda_naive
