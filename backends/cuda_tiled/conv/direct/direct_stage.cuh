// Shared by the direct convolutions for few channels: copies images to shared memory, with a border of zeros.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "cuda_common/launch.hpp"
#include "dependent_launch.cuh"
#include "divider.cuh"
#include "launch.hpp"
#include "shared_barrier.cuh"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled::direct {

constexpr int four_fold(int n) { return (n + 3) / 4 * 4; }

// The pitch of a row in floats: an odd multiple of four, so that eight neighbouring rows lie in different banks.
constexpr int odd_pitch(int columns) {
  return four_fold(columns) % 8 == 0 ? four_fold(columns) + 4 : four_fold(columns);
}

// `floats` rounded up to an odd multiple of four.
constexpr int odd_fours(int floats) { return odd_pitch(floats); }

// The layout in shared memory of rows of some images' planes, [image][channel][row], with a border of zeros.
struct Stage {
  int channels = 0;  // of a group
  int groups = 1;
  int in_rows = 0, in_columns = 0;
  int pad_r = 0, pad_s = 0;
  int rows = 0;        // in shared memory, of a plane
  int quads = 0;       // fours of floats in shared memory, of a row
  int pitch = 0;       // floats
  int plane = 0;       // floats
  int gap = 0;         // floats between images, so that they begin in different banks
  bool whole = false;  // an image lies here as it does in memory
  Divider by_quads, by_rows, by_channels;

  void finish() {
    whole = pad_r == 0 && pad_s == 0 && rows == in_rows && pitch == in_columns && plane == rows * pitch &&
            channels * plane % 4 == 0;
    by_quads = Divider(quads);
    by_rows = Divider(rows);
    by_channels = Divider(channels);
  }
  __host__ __device__ constexpr int image() const { return channels * plane + gap; }
  constexpr int64_t floats(int64_t images) const { return images * image(); }
};

template <int width>
__device__ __forceinline__ void stage_pieces(float* to, const float* from, const Stage& z, int first, int images,
                                             int group, int first_row) {
  const int count = images * z.channels * z.rows * z.quads;
  const int plane = z.in_rows * z.in_columns;
  const int64_t of_group = static_cast<int64_t>(z.channels) * plane;
  const int64_t of_image = of_group * z.groups;
  const float* const base = from + first * of_image + group * of_group;
#pragma unroll 1  // code that is run once waits for its instructions: by 4 took 1.1 times a whole forward
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    const auto [row_index, quad] = z.by_quads(i);
    const auto [plane_index, row] = z.by_rows(row_index);
    const auto [image, channel] = z.by_channels(plane_index);
    const int in_row = first_row + row - z.pad_r;
    const int in_column = quad * 4 - z.pad_s;
    const bool row_there = in_row >= 0 && in_row < z.in_rows;
    const float* const source = base + image * of_image + channel * plane + (row_there ? in_row : 0) * z.in_columns;
    float* const target = to + image * z.image() + channel * z.plane + row * z.pitch + quad * 4;
#pragma unroll
    for (int j = 0; j < 4; j += width) {
      const bool there = row_there && in_column + j >= 0 && in_column + j < z.in_columns;
      __pipeline_memcpy_async(target + j, source + (there ? in_column + j : 0), 4 * width, there ? 0 : 4 * width);
    }
  }
}

// Starts to copy `images` images from `first` on, rows from first_row on, to shared memory. The caller calls
// __pipeline_commit() and __pipeline_wait_prior(). `width`: the floats of one copy, from piece_of().
__device__ __forceinline__ void stage_images(float* to, const float* from, const Stage& z, int first, int images,
                                             int group, int first_row, int width) {
  if (width == 4) {
    stage_pieces<4>(to, from, z, first, images, group, first_row);
  } else if (width == 2) {
    stage_pieces<2>(to, from, z, first, images, group, first_row);
  } else {
    stage_pieces<1>(to, from, z, first, images, group, first_row);
  }
}

// For an image that has the same layout in shared memory as in global memory: one thread copies it as a whole
// (cp.async.bulk, sm_90), and a barrier counts its bytes.
constexpr int kBulk = 16;  // as width

// All threads of the block call it before stage_whole_images().
__device__ __forceinline__ void begin_barrier(uint64_t& barrier) {
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0) {
    barrier_init(&barrier, 1);
    fence_barrier_init();
    fence_shared();
  }
  __syncthreads();
#endif
}

// One thread calls it after barrier_expect().
__device__ __forceinline__ void stage_whole_images(float* to, const float* from, const Stage& z, int first, int images,
                                                   int group, uint64_t& barrier) {
  const int64_t of_group = static_cast<int64_t>(z.channels) * z.plane;
  const float* source = from + (static_cast<int64_t>(first) * z.groups + group) * of_group;
  for (int image = 0; image < images; ++image) {
    copy_bulk(to + image * z.image(), source + image * of_group * z.groups, z.channels * z.plane * 4, &barrier);
  }
}

// The length, in floats, of the longest copies that are aligned to their length on both sides.
inline int piece_of(const void* data, const Stage& z, bool bulk) {
  if (bulk && z.whole && reinterpret_cast<uintptr_t>(data) % 16 == 0) return kBulk;
  for (const int width : {4, 2}) {
    if (reinterpret_cast<uintptr_t>(data) % (sizeof(float) * width) == 0 && z.in_columns % width == 0 &&
        z.pad_s % width == 0) {
      return width;
    }
  }
  return 1;
}

// A kernel whose blocks all find a multiprocessor may start before the previous one has ended (dependent_launch.cuh),
// if it has each multiprocessor for itself. Otherwise the blocks of several launches would gather on some
// multiprocessors and leave others idle. H200: 1.4 times the time without this condition, 0.90 to 0.94 times with this
// much shared memory.
constexpr unsigned kSharedBytesForOne = 116 * 1024;

// Launches a kernel that calls wait_for_kernel_before(). early_blocks: the largest number of blocks with which it may
// start early.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), cuda::Launch shape, int early_blocks, cudaStream_t stream,
            Arguments&&... arguments) {
  const int64_t blocks = int64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  const bool early = blocks <= early_blocks;
  if (early) shape.shared_bytes = std::max(shape.shared_bytes, kSharedBytesForOne);
  allow_shared_memory(kernel, shape.shared_bytes);
  launch_with(kernel, shape, {.early = early}, stream, std::forward<Arguments>(arguments)...);
}

template <int n>
__device__ __forceinline__ void load_fours(float (&to)[n], const float* from) {
  static_assert(n % 4 == 0);
#pragma unroll
  for (int i = 0; i < n; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(from + i);
    to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
  }
}

}  // namespace gpunn::cuda_tiled::direct
