// Splits x[rows, channels, size] over thread blocks that each process a share of a channel. The elements of a channel
// form one sequence through the rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

#include "common/requirements.hpp"
#include "cuda_common/divide_up.hpp"
#include "pack.cuh"
#include "warp.hpp"

namespace gpunn::cuda_tiled {

inline constexpr unsigned kBlock = 256;  // threads
inline constexpr unsigned kWarps = kBlock / 32;
inline constexpr unsigned kInFlight = 16;                // elements of a thread
inline constexpr unsigned kStride = kBlock * kInFlight;  // elements of a block
inline constexpr int64_t kMostShares = 256;

// The elements of a channel, split in shares. Shares begin at multiples of kStride.
struct Split {
  int64_t channels = 0;
  unsigned rows = 0;
  unsigned size = 0;      // elements of a row
  unsigned elements = 0;  // rows * size
  unsigned share = 0;     // elements of a share; the last has fewer
  unsigned shares = 1;
};

// Throws Refusal if the kernels' counts exceed 32 bits.
inline Split split_of(int64_t rows, int64_t channels, int64_t size) {
  using backends::require;
  constexpr int64_t kMost = int64_t{1} << 31;
  require(rows < kMost && size < kMost && rows * size < kMost, "wants channels of fewer than 2^31 elements");
  require(channels <= (int64_t{1} << 22), "wants at most 2^22 channels");
  const int64_t elements = rows * size;
  const int64_t strides = std::max<int64_t>(1, cuda::divide_up(elements, kStride));
  const int64_t share = cuda::divide_up(strides, kMostShares) * kStride;
  return {.channels = channels,
          .rows = static_cast<unsigned>(rows),
          .size = static_cast<unsigned>(size),
          .elements = static_cast<unsigned>(elements),
          .share = static_cast<unsigned>(share),
          .shares = static_cast<unsigned>(std::max<int64_t>(1, cuda::divide_up(elements, share)))};
}

// How many elements of a channel enter the statistics. The count comes from device memory and may have any value.
inline __device__ unsigned counted_elements(const int32_t* count, const Split& split) {
  if (count == nullptr) return split.elements;
  const int32_t rows = max(*count, 0);
  return min(static_cast<unsigned>(rows), split.rows) * split.size;
}

// A block's share of a channel.
struct Share {
  int64_t channel;
  unsigned index;
  unsigned begin;
  unsigned end;
};

inline __device__ Share share_of(const Split& split, unsigned block) {
  const unsigned index = block % split.shares;
  const unsigned begin = index * split.share;
  return {.channel = block / split.shares,
          .index = index,
          .begin = begin,
          .end = begin + min(split.share, split.elements - begin)};
}

// The index in x of element i of a channel.
inline __device__ int64_t address_of(const Split& split, int64_t channel, unsigned i) {
  const unsigned row = i / split.size;
  return (row * split.channels + channel) * split.size + (i - row * split.size);
}

template <unsigned width, class T>
__device__ __forceinline__ void load(const T* from, float* to) {
  const auto pack = *reinterpret_cast<const Pack<T, width>*>(from);
#pragma unroll
  for (unsigned k = 0; k < width; ++k) to[k] = static_cast<float>(pack.values[k]);
}

// Two neighbours as they lie in memory.
inline __device__ uint32_t packed(float low, float high, const __nv_bfloat16*) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return static_cast<uint32_t>(__bfloat16_as_ushort(both.y)) << 16U | __bfloat16_as_ushort(both.x);
}
inline __device__ uint32_t packed(float low, float high, const __half*) {
  const __half2 both = __floats2half2_rn(low, high);
  return static_cast<uint32_t>(__half_as_ushort(both.y)) << 16U | __half_as_ushort(both.x);
}

// In one access, said outright: the compiler splits a store whose values come from branches.
template <unsigned width, class T>
__device__ __forceinline__ void store(T* to, const float* from) {
  if constexpr (sizeof(T) == 4 && width == 4) {
    __stwb(reinterpret_cast<float4*>(to), make_float4(from[0], from[1], from[2], from[3]));
  } else if constexpr (sizeof(T) == 2 && width == 8) {
    __stwb(reinterpret_cast<uint4*>(to), make_uint4(packed(from[0], from[1], to), packed(from[2], from[3], to),
                                                    packed(from[4], from[5], to), packed(from[6], from[7], to)));
  } else if constexpr (sizeof(T) == 2 && width == 4) {
    __stwb(reinterpret_cast<uint2*>(to), make_uint2(packed(from[0], from[1], to), packed(from[2], from[3], to)));
  } else {
    static_assert(width == 1);
    *to = static_cast<T>(from[0]);
  }
}

// Calls visit(first) for the thread's steps through [begin, end); a step has the elements first + j * kBlock * width to
// width - 1 behind, j < kInFlight / width, as far as they lie before the end.
template <unsigned width, class Visit>
__device__ __forceinline__ void for_steps(unsigned begin, unsigned end, const Visit& visit) {
  for (unsigned first = begin + threadIdx.x * width; first < end; first += kStride) visit(first);
}

}  // namespace gpunn::cuda_tiled
