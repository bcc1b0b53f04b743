// The mean and squared differences of the columns of y', computed by half_product while it stores a tile. They are
// taken over the rounded numbers of a warp's 16 rows, and then merged for the 64 rows of a warpgroup.
//
// Squares are summed around the first row's number, so that a mean far from zero costs no digits, and are shifted to
// the mean at the end.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "fragments.cuh"
#include "half/half_product.hpp"
#include "warp.hpp"

namespace gpunn::cuda_tiled {

// How many rows enter the statistics. What the device holds may be anything.
__device__ __forceinline__ int counted_rows(const HalfStatistics& statistics, int rows) {
  if (statistics.images == nullptr) return rows;
  return min(max(*statistics.images, 0), rows / statistics.pixels) * statistics.pixels;
}

// How many of the `rows` rows from `first` on.
__device__ __forceinline__ int counted_of(int counted, int first, int rows) {
  return min(max(counted - first, 0), rows);
}

// The two numbers of 16 bits in a word.
template <bool kBf16>
__device__ __forceinline__ float2 numbers_of(uint32_t word) {
  if constexpr (kBf16) return make_float2(__uint_as_float(word << 16U), __uint_as_float(word & 0xFFFF0000U));
  __half2 pair;
  memcpy(&pair, &word, sizeof(pair));
  return __half22float2(pair);
}

// Two neighbours, rounded to the nearest.
template <bool kBf16>
__device__ __forceinline__ uint32_t half_pair(float low, float high) {
  return packed<std::conditional_t<kBf16, __nv_bfloat16, __half>>(low, high);
}

__device__ __forceinline__ uint32_t load_word(uint32_t address) {
  uint32_t word;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}

// Of a warp's 16 rows. A lane takes two neighbouring columns of a pass; where a pass has fewer than 32 such pairs, two
// lanes share the rows of one, and each keeps one of its columns.
template <class T>
class WarpStatistics {
 public:
  static constexpr int kPasses = T::kColumns / T::kPass;
  static constexpr bool kShared = T::kPass == 32;
  static constexpr int kKept = kShared ? 1 : 2;  // columns of a lane and pass
  static_assert(kShared || T::kPass == 64);

  __device__ __forceinline__ WarpStatistics(int row, int counted)
      : rows_(counted_of(counted, row, 16)), share_(1.0F / static_cast<float>(rows_)) {}

  // A pass, by the addresses of its numbers in shared memory: place(row, chunk of 8 numbers).
  template <class Place>
  __device__ __forceinline__ void add(int pass, int lane, const Place& place) {
    constexpr bool kBf16 = T::kElement == HalfElement::kBf16;
    constexpr int kStep = kShared ? 2 : 1;
    constexpr int kBatch = kShared ? 4 : 8;  // rows on their way to a lane
    const int pair = lane % (T::kPass / 2), first = kShared ? lane / 16 : 0;
    // Rows 2 i and 2 i + 1 of a narrow pass have their chunks in the same order: what differs is known to the compiler.
    const uint32_t offset = static_cast<uint32_t>(pair % 4 * 4 + first * T::kPass * int{sizeof(uint16_t)});
    const auto word_of = [&](int row) { return load_word(place(row, pair / 4) + offset); };
    const float2 around = numbers_of<kBf16>(load_word(place(0, pair / 4) + pair % 4 * 4));
    float2 sums = make_float2(0.0F, 0.0F), squares = sums;
#pragma unroll
    for (int batch = 0; batch < 16; batch += kStep * kBatch) {
      uint32_t words[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) words[i] = word_of(batch + i * kStep);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const float2 here = numbers_of<kBf16>(words[i]);
        const float x = here.x - around.x, y = here.y - around.y;
        if (batch + i * kStep + first >= rows_) continue;
        sums.x += x;
        sums.y += y;
        squares.x += x * x;
        squares.y += y * y;
      }
    }
    if constexpr (kShared) {
      const bool second = first == 1;
      columns_[pass][0] = moments(second ? around.y : around.x, exchanged(sums, second), exchanged(squares, second));
    } else {
      columns_[pass][0] = moments(around.x, sums.x, squares.x);
      columns_[pass][1] = moments(around.y, sums.y, squares.y);
    }
  }

  // Leaves mean and squares in the warp's part of shared memory, by column of the tile.
  __device__ __forceinline__ void leave(int lane, uint8_t* staging) const {
    static_assert(T::kColumns * int{sizeof(float2)} <= T::kStagingBytes);
    float2* const to = reinterpret_cast<float2*>(staging) + (kShared ? lane % 16 * 2 + lane / 16 : lane * 2);
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
#pragma unroll
      for (int k = 0; k < kKept; ++k) to[pass * T::kPass + k] = columns_[pass][k];
    }
  }

 private:
  // Both lanes' sums of the column that this lane keeps.
  static __device__ __forceinline__ float exchanged(const float2& mine, bool second) {
    return (second ? mine.y : mine.x) + __shfl_xor_sync(kEveryLane, second ? mine.x : mine.y, 16);
  }
  __device__ __forceinline__ float2 moments(float around, float sum, float squares) const {
    const float apart = sum * share_;
    squares -= sum * apart;
    return make_float2(around + apart, squares < 0.0F ? 0.0F : squares);  // NaN stays NaN
  }

  float2 columns_[kPasses][kKept];
  int rows_;
  float share_;
};

// All threads of a warpgroup. Each has a barrier of its own; barrier 0 is that of the block.
__device__ __forceinline__ void warpgroup_sync(int consumer) {
  // A barrier's number in a register would reserve all sixteen barriers.
  if (consumer == 0)
    asm volatile("bar.sync 1, 128;" ::: "memory");
  else if (consumer == 1)
    asm volatile("bar.sync 2, 128;" ::: "memory");
  else
    asm volatile("bar.sync 3, 128;" ::: "memory");
}

// The slab of a warpgroup's 64 rows from `row` on, out of what its warps have left in `staging`. One warpgroup.
template <class T>
__device__ __forceinline__ void store_slab(const HalfProduct& product, int row, int column, int counted,
                                           const uint8_t* staging, int consumer, int thread) {
  constexpr int kWarps = 4;
  constexpr int kPitch = T::kStagingBytes / int{sizeof(float2)};  // from a warp's part to the next
  warpgroup_sync(consumer);
  float rows[kWarps];
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) rows[warp] = static_cast<float>(counted_of(counted, row + warp * 16, 16));
  const float share = 1.0F / (rows[0] + rows[1] + rows[2] + rows[3]);
  for (int at = thread; at < T::kColumns && column + at < product.columns; at += kWarps * 32) {
    float2 parts[kWarps];
    float sum = 0.0F;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      parts[warp] = reinterpret_cast<const float2*>(staging)[warp * kPitch + at];
      if (rows[warp] > 0.0F) sum += parts[warp].x * rows[warp];
    }
    const float mean = sum * share;
    float squares = 0.0F;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      const float apart = parts[warp].x - mean;
      if (rows[warp] > 0.0F) squares += parts[warp].y + apart * apart * rows[warp];
    }
    product.statistics.slabs[int64_t{row / kSlabRows} * product.columns + column + at] = make_float2(mean, squares);
  }
  warpgroup_sync(consumer);  // before the next rows take the staging
}

}  // namespace gpunn::cuda_tiled
