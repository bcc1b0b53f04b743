// How conv:half_patch stores a tile (half_patch.cu): with bias, residual and ReLU, or with what batch norm's statistics
// or its gradient need of it.
#pragma once

#include <cstdint>

#include "conv/half/half_patch_plan.hpp"
#include "epilogue.cuh"
#include "half/half_gradient.cuh"
#include "half/half_instructions.cuh"
#include "half/half_store.cuh"
#include "moments.cuh"
#include "warp.hpp"

namespace gpunn::cuda_tiled {

struct PatchTile {
  int unit;
  int image;
  int row;     // of y, of its first pixel
  int column;  // of that; it may be in the gap
  __device__ __forceinline__ PatchTile(const PatchConvolution& plan, int number) {
    const Divider::Result of_images = plan.image_units(number);
    const Divider::Result first = plan.pitch(of_images.rest * plan.pixels);
    unit = number;
    image = of_images.quotient;
    row = first.quotient;
    column = first.rest;
  }
};

// Four matrices of 8 x 8 numbers of 16 bits between registers and the rows whose addresses the lanes name: in registers
// a thread has two neighbours of a column.
__device__ __forceinline__ void store_transposed(uint32_t address, const uint32_t (&words)[4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words[0]),
               "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
#endif
}
__device__ __forceinline__ void store_chunk(uint32_t address, const uint4& eight) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(eight.x), "r"(eight.y), "r"(eight.z),
               "r"(eight.w)
               : "memory");
}
__device__ __forceinline__ void load_transposed(uint32_t address, uint32_t (&words)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address)
               : "memory");
}

// Whether a pixel of a tile, gaps included, is one of y, and its place there.
struct PatchPixel {
  bool there;
  int64_t place;  // of its first filter
  __device__ __forceinline__ PatchPixel(const PatchConvolution& plan, const PatchTile& tile, int number) {
    const Divider::Result at = plan.pitch(tile.column + number);
    const int row = tile.row + at.quotient;
    there = row < plan.height && at.rest < plan.width;
    place = ((int64_t{tile.image} * plan.height + row) * plan.width + at.rest) * plan.filters;
  }
};

// Mean and squares of two filters, over those of a tile's pixels that a lane has. Squares are summed around the first
// pixel's number, so that a mean far from zero costs no digits.
class PatchStatistics {
 public:
  // A pixel's two numbers.
  __device__ __forceinline__ void add(float first, float second) {
    if (pixels_ == 0.0F) around_[0] = first, around_[1] = second;
    const float apart[2] = {first - around_[0], second - around_[1]};
    pixels_ += 1.0F;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      sums_[k] += apart[k];
      squares_[k] += apart[k] * apart[k];
    }
  }

  // Of filter k, of all four lanes that have it; the first of them gets it.
  __device__ __forceinline__ Moments of(int k) const {
    Moments all{pixels_, 0.0F, 0.0F};
    if (pixels_ > 0.0F) {
      const float apart = sums_[k] / pixels_, squares = squares_[k] - sums_[k] * apart;
      all.mean = around_[k] + apart;
      all.squares = squares < 0.0F ? 0.0F : squares;  // NaN stays NaN
    }
#pragma unroll
    for (int reach = 2; reach > 0; reach /= 2) {
      all = merge(all, {__shfl_down_sync(kEveryLane, all.n, reach), __shfl_down_sync(kEveryLane, all.mean, reach),
                        __shfl_down_sync(kEveryLane, all.squares, reach)});
    }
    return all;
  }

 private:
  float around_[2] = {}, sums_[2] = {}, squares_[2] = {};
  float pixels_ = 0.0F;
};

// What the statistics and sums of a tile are taken of.
__device__ __forceinline__ bool counts(const int32_t* images, const PatchTile& tile) {
  return images == nullptr || tile.image < *images;
}

// Stores a warp's 16 filters from `filter` on, with bias, residual and ReLU, through its part of shared memory. A lane
// stores eight filters of a pixel. `kEnds`: with HalfStatistics or, of a data gradient, HalfGradient.
template <bool kBf16, bool kGradient, bool kEnds, int kPixels>
__device__ __forceinline__ void store_patch(const PatchConvolution& plan, const PatchTile& tile, int filter,
                                            const float (&d)[kPixels / 2], uint8_t* staging) {
  constexpr int kTogether = 4;  // passes whose loads are under way at a time
  constexpr bool kSumsUp = kEnds && kGradient, kMeasures = kEnds && !kGradient;
  const int lane = lane_index();
  float bias[2] = {};
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const int of = filter + lane / 4 + k * 8;
    if (plan.epilogue.bias != nullptr && of < plan.filters) bias[k] = plan.epilogue.bias[of];
  }
  const bool relu = plan.epilogue.relu, adds = plan.residual != nullptr;
  // Of the lane in the staging: the row of a matrix, and the chunk that it stores.
  const uint32_t shared = shared_address(staging);
  const uint32_t matrix_row = shared + static_cast<uint32_t>((lane / 16 * 8 + lane % 8) * 32 + lane / 8 % 2 * 16);
  const uint32_t chunk = shared + static_cast<uint32_t>(lane * 16);
  const int my_filter = filter + lane % 2 * 8;
  const bool has_filter = my_filter < plan.filters;
  [[maybe_unused]] PatchStatistics statistics;
  [[maybe_unused]] bool counted = false;
  [[maybe_unused]] float totals[16] = {}, mean[8] = {};
  if constexpr (kMeasures) counted = counts(plan.statistics.images, tile);
  if constexpr (kSumsUp) {
    counted = counts(plan.gradient.images, tile);
    if (has_filter) load_means(plan.gradient, my_filter, mean);
  }
#pragma unroll
  for (int first = 0; first < kPixels / kStoredPixels; first += kTogether) {
    bool stored[kTogether];
    int64_t place[kTogether];
    [[maybe_unused]] uint4 residual[kTogether];
    [[maybe_unused]] GradientChunk behind[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const PatchPixel pixel(plan, tile, (first + i) * kStoredPixels + lane / 2);
      stored[i] = has_filter && pixel.there;
      place[i] = pixel.place + my_filter;
      if constexpr (kSumsUp) {
        if (stored[i]) behind[i].load(plan.gradient, place[i]);
      }
      if constexpr (!kEnds) {
        residual[i] = make_uint4(0, 0, 0, 0);
        if (adds && stored[i]) residual[i] = load_eight(plan.residual, place[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int pass = first + i;
      float sums[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) sums[k] = d[pass * 8 + k] + bias[k / 2 % 2];
      uint32_t words[4];
      if (!kEnds && adds) {
        store_chunk(chunk, residual[i]);
        __syncwarp();
        load_transposed(matrix_row, words);
        __syncwarp();
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float2 two = numbers_of<kBf16>(words[k]);
          sums[k * 2] += two.x;
          sums[k * 2 + 1] += two.y;
        }
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        words[k] = half_pair<kBf16>(rectified(sums[k * 2], relu), rectified(sums[k * 2 + 1], relu));
      }
      if constexpr (kMeasures) {
        // Of each eight pixels a lane has two neighbours, of two filters.
#pragma unroll
        for (int eight = 0; eight < 2; ++eight) {
          const int number = pass * kStoredPixels + eight * 8 + lane % 4 * 2;
          const float2 a = numbers_of<kBf16>(words[eight * 2]), b = numbers_of<kBf16>(words[eight * 2 + 1]);
          if (counted && PatchPixel(plan, tile, number).there) statistics.add(a.x, b.x);
          if (counted && PatchPixel(plan, tile, number + 1).there) statistics.add(a.y, b.y);
        }
      }
      store_transposed(matrix_row, words);
      __syncwarp();
      uint4 eight = load_chunk(chunk);
      if (stored[i]) {
        if constexpr (kSumsUp) {
          const bool more = plan.gradient.more != nullptr;
          eight = masked_gradient<kBf16>(behind[i], eight, more, mean, counted, totals);
        }
        *reinterpret_cast<uint4*>(static_cast<uint16_t*>(plan.y) + place[i]) = eight;
      }
      __syncwarp();
    }
  }
  if constexpr (kMeasures) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const Moments all = statistics.of(k);
      const int of = filter + lane / 4 + k * 8;
      if (lane % 4 > 0 || of >= plan.filters) continue;
      plan.statistics.slabs[int64_t{tile.unit} * plan.filters + of] = make_float2(all.mean, all.squares);
    }
  }
  if constexpr (kSumsUp) {
    halve<8>(totals, lane / 16 == 1, 16);
    halve<4>(totals, lane / 8 % 2 == 1, 8);
    halve<2>(totals, lane / 4 % 2 == 1, 4);
    halve<1>(totals, lane / 2 % 2 == 1, 2);
    const int of = my_filter + lane / 8 % 2 * 4 + lane / 4 % 2 * 2 + lane / 2 % 2;
    float* const slabs = reinterpret_cast<float*>(plan.gradient.slabs);
    if (has_filter) slabs[(int64_t{tile.unit} * plan.filters + of) * 2 + lane / 16] = totals[0];
  }
}

}  // namespace gpunn::cuda_tiled
