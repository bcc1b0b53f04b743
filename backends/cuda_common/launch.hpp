// Helpers that launch kernels. For .cu files.
#pragma once

#include <cstdint>
#include <utility>

#include <cuda_runtime.h>

#include "cuda_common/check.hpp"
#include "cuda_common/divide_up.hpp"

namespace gpunn::cuda {

// The default number of threads in a block.
inline constexpr unsigned kThreads = 256;

struct Launch {
  dim3 grid;
  dim3 block;
  unsigned shared_bytes = 0;
};

// The number of blocks that cover n elements in one dimension of a grid.
inline unsigned grid_size(int64_t n, int64_t of_block) { return static_cast<unsigned>(divide_up(n, of_block)); }

// One thread for each of n elements.
inline Launch thread_each(int64_t n, unsigned threads = kThreads) {
  return {dim3(grid_size(n, threads)), dim3(threads)};
}

// One block for each of n elements.
inline Launch block_each(int64_t n, unsigned threads = kThreads) {
  return {dim3(static_cast<unsigned>(n)), dim3(threads)};
}

// The element that this thread of thread_each handles.
__device__ __forceinline__ int64_t thread_index() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }

// Launches kernel<<<...>>>(arguments...). An empty grid launches nothing and is no error.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const Launch& shape, cudaStream_t stream, Arguments&&... arguments) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  check(cudaLaunchKernelEx(&config, kernel, Parameters(std::forward<Arguments>(arguments))...), "launching a kernel");
}

}  // namespace gpunn::cuda
