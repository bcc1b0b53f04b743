// The gradient of a batch norm, begun by half_product while it stores a tile of the gradient of its output, in the
// place of dy: the sum with another gradient, the mask of the ReLU between, and the sums of dy and of dy (x - mean) of
// the columns. So dy is written once, masked, and read once.
//
// A lane takes chunks of 8 columns of a row, 16 bytes of each tensor. What the lanes of a chunk have is added up by
// halves: after each step a lane has half as many numbers, of twice as many rows.
#pragma once

#include <cstdint>

#include "half/half_product.hpp"
#include "half/half_statistics.cuh"
#include "warp.hpp"

namespace gpunn::cuda_tiled {

// How many rows of a phase enter the sums. What the device holds may be anything.
__device__ __forceinline__ int counted_rows(const HalfGradient& gradient, const HalfPhase& phase) {
  if (gradient.images == nullptr) return phase.rows;
  const int pixels = static_cast<int>(phase.windows.image.by);
  return min(max(*gradient.images, 0), phase.rows / pixels) * pixels;
}

// Eight neighbours of a row that is read once.
__device__ __forceinline__ uint4 load_eight(const void* tensor, int64_t place) {
  return __ldcs(reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(tensor) + place));
}

// What is behind eight neighbours of a row.
struct GradientChunk {
  uint4 more, relu_y, x;

  // On their way.
  __device__ __forceinline__ void load(const HalfGradient& gradient, int64_t place) {
    relu_y = load_eight(gradient.relu_y, place);
    x = load_eight(gradient.x, place);
    if (gradient.more != nullptr) more = load_eight(gradient.more, place);
  }
};

__device__ __forceinline__ void load_means(const HalfGradient& gradient, int column, float (&mean)[8]) {
#pragma unroll
  for (int k = 0; k < 8; k += 4) {
    const float4 four = __ldg(reinterpret_cast<const float4*>(gradient.mean + column + k));
    mean[k] = four.x, mean[k + 1] = four.y, mean[k + 2] = four.z, mean[k + 3] = four.w;
  }
}

// dy with `more` added, where the ReLU passed it. Adds what counts to `totals`: dy, then dy (x - mean).
template <bool kBf16>
__device__ __forceinline__ uint4 masked_gradient(const GradientChunk& chunk, const uint4& sums, bool adds,
                                                 const float (&mean)[8], bool counts, float (&totals)[16]) {
  const uint32_t dy[4] = {sums.x, sums.y, sums.z, sums.w};
  const uint32_t more[4] = {chunk.more.x, chunk.more.y, chunk.more.z, chunk.more.w};
  const uint32_t relu_y[4] = {chunk.relu_y.x, chunk.relu_y.y, chunk.relu_y.z, chunk.relu_y.w};
  const uint32_t x[4] = {chunk.x.x, chunk.x.y, chunk.x.z, chunk.x.w};
  uint32_t masked[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    masked[k] = dy[k];
    if (adds) {
      const float2 a = numbers_of<kBf16>(dy[k]), b = numbers_of<kBf16>(more[k]);
      masked[k] = half_pair<kBf16>(a.x + b.x, a.y + b.y);
    }
    const float2 passed = numbers_of<kBf16>(relu_y[k]);
    masked[k] &= (passed.x > 0.0F ? 0xFFFFU : 0U) | (passed.y > 0.0F ? 0xFFFF0000U : 0U);
    const float2 flows = numbers_of<kBf16>(masked[k]), at = numbers_of<kBf16>(x[k]);
    if (!counts) continue;
    totals[k * 2] += flows.x;
    totals[k * 2 + 1] += flows.y;
    totals[8 + k * 2] += flows.x * (at.x - mean[k * 2]);
    totals[8 + k * 2 + 1] += flows.y * (at.y - mean[k * 2 + 1]);
  }
  return make_uint4(masked[0], masked[1], masked[2], masked[3]);
}

// The first half of `values`, or the second, and what the other lane has of it.
template <int kCount>
__device__ __forceinline__ void halve(float (&values)[16], bool second, int reach) {
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const float mine = second ? values[k + kCount] : values[k], other = second ? values[k] : values[k + kCount];
    values[k] = mine + __shfl_xor_sync(kEveryLane, other, reach);
  }
}

// Of a warp's 16 rows.
template <class T>
class WarpGradients {
 public:
  static constexpr bool kBf16 = T::kElement == HalfElement::kBf16;
  static constexpr int kPasses = T::kColumns / T::kPass;
  static constexpr int kChunks = T::kPass / 8;      // of a row
  static constexpr int kRowsAtOnce = 32 / kChunks;  // of the warp
  static constexpr int kStores = 16 / kRowsAtOnce;
  static constexpr int kKept = T::kPass / 16;  // numbers of a lane and pass: 2 of each column, among 32 lanes
  static_assert(kChunks == 4 || kChunks == 8);

  // The chunks that a lane has of a pass, on their way.
  struct Chunks {
    GradientChunk of_row[kStores];
  };

  __device__ __forceinline__ WarpGradients(int row, int counted) : rows_(counted_of(counted, row, 16)) {}

  // `to` has the lane's rows of y, NULL for one that is not there; column -1: the lane has no chunk.
  static __device__ __forceinline__ void load(Chunks& chunks, const HalfProduct& product,
                                              uint16_t* const (&to)[kStores], int column) {
#pragma unroll
    for (int i = 0; i < kStores; ++i) {
      if (to[i] == nullptr || column < 0) continue;
      chunks.of_row[i].load(product.gradient, to[i] - static_cast<uint16_t*>(product.y) + column);
    }
  }

  // Stores a pass; sums(i) is the lane's chunk of row i.
  template <class Sums>
  __device__ __forceinline__ void store(const Chunks& chunks, const HalfProduct& product,
                                        uint16_t* const (&to)[kStores], int pass, int column, int lane,
                                        const Sums& sums) {
    const bool adds = product.gradient.more != nullptr;
    float mean[8];
    load_means(product.gradient, max(column, 0), mean);
    float totals[16] = {};
#pragma unroll
    for (int i = 0; i < kStores; ++i) {
      const uint4 eight = sums(i);
      if (to[i] == nullptr || column < 0) continue;
      const bool counts = i * kRowsAtOnce + lane / kChunks < rows_;
      *reinterpret_cast<uint4*>(to[i] + column) =
          masked_gradient<kBf16>(chunks.of_row[i], eight, adds, mean, counts, totals);
    }
    keep(totals, pass, lane);
  }

  // Leaves both sums in the warp's part of shared memory, by column of the tile.
  __device__ __forceinline__ void leave(int lane, uint8_t* staging) const {
    static_assert(T::kColumns * int{sizeof(float2)} <= T::kStagingBytes);
    const int kind = lane / 16;
    int column = lane % kChunks * 8 + lane / 8 % 2 * 4;
    if constexpr (kChunks == 4) column += lane / 4 % 2 * 2;
    float* const to = reinterpret_cast<float*>(staging) + column * 2 + kind;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
#pragma unroll
      for (int k = 0; k < kKept; ++k) to[(pass * T::kPass + k) * 2] = columns_[pass][k];
    }
  }

 private:
  __device__ __forceinline__ void keep(float (&totals)[16], int pass, int lane) {
    halve<8>(totals, lane / 16 == 1, 16);
    halve<4>(totals, lane / 8 % 2 == 1, 8);
    if constexpr (kChunks == 4) halve<2>(totals, lane / 4 % 2 == 1, 4);
#pragma unroll
    for (int k = 0; k < kKept; ++k) columns_[pass][k] = totals[k];
  }

  float columns_[kPasses][kKept] = {};
  int rows_;
};

// The slab of a warpgroup's 64 rows from `row` of the phase on, out of what its warps have left in `staging`. One
// warpgroup.
template <class T>
__device__ __forceinline__ void store_gradient_slab(const HalfProduct& product, const HalfPhase& phase, int row,
                                                    int column, const uint8_t* staging, int consumer, int thread) {
  constexpr int kWarps = 4;
  constexpr int kPitch = T::kStagingBytes / int{sizeof(float2)};  // from a warp's part to the next
  warpgroup_sync(consumer);
  for (int at = thread; at < T::kColumns && column + at < product.columns; at += kWarps * 32) {
    float2 sum = make_float2(0.0F, 0.0F);
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      if (row + warp * 16 >= phase.rows) continue;
      const float2 part = reinterpret_cast<const float2*>(staging)[warp * kPitch + at];
      sum.x += part.x;
      sum.y += part.y;
    }
    product.gradient.slabs[int64_t{phase.first_slab + row / kSlabRows} * product.columns + column + at] = sum;
  }
  warpgroup_sync(consumer);  // before the next rows take the staging
}

}  // namespace gpunn::cuda_tiled
