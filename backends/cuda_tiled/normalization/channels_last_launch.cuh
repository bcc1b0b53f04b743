// What the kernels of channels_last.cuh are launched with.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "cuda_common/alignment.hpp"
#include "cuda_common/divide_up.hpp"
#include "cuda_common/launch.hpp"
#include "launch.hpp"
#include "normalization/channels_last.cuh"

namespace gpunn::cuda_tiled::channels_last {

// Calls run(a constant): as many channels as can be had at a time from all these tensors.
template <class T, class Run>
void by_channels(int64_t channels, std::initializer_list<const T*> tensors, const Run& run) {
  constexpr unsigned kMost = kWidth<T>;
  if (channels % kMost == 0 && cuda::are_aligned(tensors, kMost * sizeof(T))) {
    run(std::integral_constant<unsigned, kMost>());
  } else if (channels % 4 == 0 && cuda::are_aligned(tensors, 4 * sizeof(T))) {
    run(std::integral_constant<unsigned, 4>());
  } else {
    run(std::integral_constant<unsigned, 1>());
  }
}

inline cuda::Launch blocks_of(const Matrix& matrix, unsigned width, int64_t images = 1) {
  const unsigned tiles = cuda::grid_size(matrix.channels, int64_t{matrix.columns} * width);
  return {dim3(tiles, matrix.shares, static_cast<unsigned>(images)), dim3(kBlock)};
}

// The blocks that put the shares together.
inline cuda::Launch joining(const Matrix& matrix, int64_t images = 1) {
  return {dim3(cuda::grid_size(matrix.channels, kJoined), 1, static_cast<unsigned>(images)), dim3(kBlock)};
}

// A kernel that begins before the one in front of it has ended.
template <class... Parameters, class... Arguments>
void launch_early(void (*kernel)(Parameters...), const cuda::Launch& shape, cudaStream_t stream,
                  Arguments&&... arguments) {
  if (shape.grid.x > 0) launch_with(kernel, shape, {.early = true}, stream, std::forward<Arguments>(arguments)...);
}

}  // namespace gpunn::cuda_tiled::channels_last
