// How the threads of a block combine a value of each to one: a tree in shared memory.
//
// A block reduces a long axis in two stages: each thread runs over its share of the elements, every blockDim.x-th, so
// that neighbouring threads read neighbours; then the threads' results meet in the tree. Shared memory is the block's
// own, on the chip and some ten times nearer than the GPU's. In each round the lower half of the threads that are left
// takes up what the upper half holds:
//
//     0 1 2 3 4 5 6 7        8 values
//     0+4 1+5 2+6 3+7        4, after one round
//     ...                    1, after log2(8) = 3
//
// Who is added to whom depends on the numbers of the threads alone, never on which of them comes first. So the rounding
// is the same in every run, unlike with atomicAdd. The next version would do the last five rounds in registers
// (__shfl_down_sync), without shared memory and without waiting for the block's other warps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda_common/launch.hpp"

namespace gpunn::cuda_naive {

inline constexpr unsigned kMostTreeThreads = 1024;  // the most that a block may have

// A block for each of n results that combine `length` elements each; about a thread an element, a power of two. The
// kernel must loop, since a grid ends at 2^31 - 1 blocks:
//
//   for (int64_t i = blockIdx.x; i < n; i += gridDim.x) ...
inline cuda::Launch tree_each(int64_t n, int64_t length, unsigned most_threads = cuda::kThreads) {
  unsigned threads = 32;
  while (threads < most_threads && threads < length) threads *= 2;
  return cuda::block_each(std::min<int64_t>(n, INT32_MAX), threads);
}

// combine(a, b) over the `mine` of all threads of the block, all of which must call it; every thread gets the result.
// blockDim.x must be a power of two.
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
