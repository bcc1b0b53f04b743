// Bulk copies of images to shared memory (cp.async.bulk, sm_90), for planes that have the same layout there as in
// global memory. One thread of each warp issues the copies of some planes, and a barrier counts their bytes.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "conv/direct/direct_stage.cuh"
#include "shared_barrier.cuh"

namespace gpunn::cuda_tiled::direct {

struct Bulk {
  int floats = 0;         // of a copy: of a plane, or an image; 0: none
  bool together = false;  // all images by one copy
};

inline Bulk bulk_of(const Stage& z) {
  constexpr int kLeast = 64;  // floats
  Bulk bulk;
  const int plane = z.rows * z.pitch;
  if (z.pad_r == 0 && z.pad_s == 0 && z.rows == z.in_rows && z.pitch == z.in_columns && plane >= kLeast) {
    bulk.floats = z.plane == plane ? z.channels * plane : plane;
  }
  bulk.together = bulk.floats > plane && z.groups == 1 && z.gap == 0;
  return bulk;
}

// As piece_of(), but kBulk if bulk copies are possible.
inline int piece_of(const void* data, const Stage& z, const Bulk& bulk, bool early) {
  if (early && bulk.floats > 0 && reinterpret_cast<uintptr_t>(data) % 16 == 0) return kBulk;
  return piece_of(data, z, false);
}

__device__ __forceinline__ int bulk_bytes(const Stage& z, int images) {
  return images * z.channels * z.in_rows * z.in_columns * static_cast<int>(sizeof(float));
}

// All threads of the block call it after begin_barrier(); one of them expects bulk_bytes().
__device__ __forceinline__ void stage_in_bulk(float* to, const float* from, const Stage& z, const Bulk& bulk, int first,
                                              int images, int group, uint64_t& barrier) {
  if (threadIdx.x % 32 != 0) return;
  const int plane = z.in_rows * z.in_columns;
  const int64_t of_group = static_cast<int64_t>(z.channels) * plane;
  const float* const source = from + (static_cast<int64_t>(first) * z.groups + group) * of_group;
  if (bulk.together) {
    if (threadIdx.x == 0) copy_bulk(to, source, bulk_bytes(z, images), &barrier);
    return;
  }
  const bool planes = bulk.floats == plane;
  const int copies = planes ? images * z.channels : images;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) / 32; i < copies; i += static_cast<int>(blockDim.x) / 32) {
    int image = i;
    int channel = 0;
    if (planes) {
      const auto [quotient, rest] = z.by_channels(i);
      image = quotient, channel = rest;
    }
    copy_bulk(to + image * z.image() + channel * z.plane, source + image * of_group * z.groups + channel * plane,
              bulk.floats * static_cast<int>(sizeof(float)), &barrier);
  }
}

}  // namespace gpunn::cuda_tiled::direct
