// gemm:wgmma_split: matrix product for few tiles, with K split among the blocks of a cluster (split-K). Each block
// multiplies its part of K for one tile and leaves the sums in its shared memory. After a barrier of the cluster each
// block adds a share of the tile over distributed shared memory, in the order of K. So there is no workspace and no
// second kernel, and the result is the same each time. With one part the sums are stored directly, and two blocks share
// their tiles of b. Tiles are 128 x 128 or, in gemm:wgmma_split_low, 64 x 128.
//
// H200: 1024^3, NT, in 10.5 us in TF32, 204 TFLOP/s, 2.1 times gemm:wgmma_persistent; BF16 7.7 us, 278 TFLOP/s, 1.7
// times. gemm:wgmma_split_low takes 10.0 us and 6.6 us there, and 8.8 us instead of 11.1 for 256 x 256 x 4096.
#pragma once

#include <type_traits>

#include "cuda_common/divide_up.hpp"
#include "gemm/wgmma/wgmma.cuh"
#include "last_block.cuh"
#include "quads.cuh"

namespace gpunn::cuda_tiled {

inline constexpr int kMostParts = 8;

// The sums of a block in shared memory, as y has them. The padding keeps a half-warp's pairs in different banks.
template <class T, bool kTransposed>
struct Sums {
  static constexpr int kHeight = kTransposed ? T::kColumns : T::kRows;
  static constexpr int kWidth = kTransposed ? T::kRows : T::kColumns;
  static constexpr int kPitch = kWidth + 8;
  static constexpr int kBytes = kHeight * kPitch * static_cast<int>(sizeof(float));
};

template <class T, bool kTransposed>
__device__ __forceinline__ void leave_sums(const float (&d)[T::kColumns / 2], float* sums, int row, int column) {
  constexpr int kPitch = Sums<T, kTransposed>::kPitch;
#pragma unroll
  for (int j = 0; j < T::kColumns / 8; ++j) {
    const float* const s = d + j * 4;
    if constexpr (kTransposed) {
      float* const at = sums + (column + j * 8) * kPitch + row;
      *reinterpret_cast<float2*>(at) = make_float2(s[0], s[2]);
      *reinterpret_cast<float2*>(at + kPitch) = make_float2(s[1], s[3]);
    } else {
      float* const at = sums + row * kPitch + column + j * 8;
      *reinterpret_cast<float2*>(at) = make_float2(s[0], s[1]);
      *reinterpret_cast<float2*>(at + kRowStep<T> * kPitch) = make_float2(s[2], s[3]);
    }
  }
}

// Adds and stores this block's share, which is rows of y's tile; (row, column) is the tile in y', `first_rank` the
// cluster's first block that has a part of it.
template <class T, bool kTransposed>
__device__ __forceinline__ void store_share(const WgmmaOutput& out, const float* sums, int row, int column, int part,
                                            int parts, uint32_t first_rank) {
  const int height = kTransposed ? out.columns : out.rows, width = kTransposed ? out.rows : out.columns;
  const int top = kTransposed ? column : row, left = kTransposed ? row : column;
  constexpr int kPitch = Sums<T, kTransposed>::kPitch, kHeight = Sums<T, kTransposed>::kHeight;
  constexpr int kQuads = Sums<T, kTransposed>::kWidth / 4;  // of a row
  const int end = kHeight * (part + 1) / parts * kQuads;
#pragma unroll 2
  for (int i = kHeight * part / parts * kQuads + static_cast<int>(threadIdx.x); i < end; i += T::kThreads) {
    const int y_row = top + i / kQuads, y_column = left + i % kQuads * 4;
    if (y_row >= height || y_column >= width) continue;
    const float* const here = sums + i / kQuads * kPitch + i % kQuads * 4;
    float4 sum = load_shared_of(here, first_rank);
    for (int other = 1; other < parts; ++other) {
      sum = sum + load_shared_of(here, first_rank + static_cast<uint32_t>(other));
    }
    const float values[4] = {sum.x, sum.y, sum.z, sum.w};
    float results[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const bool biased = out.epilogue.bias != nullptr && y_column + j < width;
      results[j] = finish(out.epilogue, values[j], biased ? out.epilogue.bias[y_column + j] : 0.0F);
    }
    float* const y = out.y + int64_t{y_row} * width + y_column;
    if (width % 4 == 0) {
      *reinterpret_cast<float4*>(y) = make_float4(results[0], results[1], results[2], results[3]);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (y_column + j < width) y[j] = results[j];
      }
    }
  }
}

// The epilogue of masked.hpp for a y' that is y's transpose, of y whose rows are whole quads. Of the tile that begins
// at (tile * kColumns, column) of y, `tiles` of which lie above each other, this block has the rows begin...end - 1.
template <class T>
class MaskedShare {
  static constexpr int kPitch = Sums<T, true>::kPitch, kHeight = Sums<T, true>::kHeight;
  static constexpr int kQuads = Sums<T, true>::kWidth / 4;  // of a row
  static constexpr int kGroups = T::kThreads / kQuads;      // of threads, with a row each at a time
  static constexpr int kMost = cuda::divide_up(kHeight, kGroups);
  static_assert(kGroups * kQuads == T::kThreads);

 public:
  // Asks for the mask before there is anything to mask, so that no thread waits for it.
  __device__ __forceinline__ MaskedShare(const WgmmaOutput& out, int column, int tile, int part, int parts)
      : group_(static_cast<int>(threadIdx.x) / kQuads),
        quad_(static_cast<int>(threadIdx.x) % kQuads),
        begin_(kHeight * part / parts + group_) {
    const bool inside = column + quad_ * 4 < out.rows;
    end_ = inside ? min(kHeight * (part + 1) / parts, out.columns - tile * T::kColumns) : 0;
    at_ = int64_t{tile * T::kColumns + begin_} * out.rows + column + quad_ * 4;
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      mask_[i] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
      if (begin_ + i * kGroups < end_) {
        // Volatile, or the compiler would load where the numbers are used.
        asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(mask_[i].x), "=f"(mask_[i].y), "=f"(mask_[i].z), "=f"(mask_[i].w)
                     : "l"(out.mask.y + at_ + int64_t{i} * kGroups * out.rows));
      }
    }
  }

  // As store_share. The sums of this thread's columns go to the parts.
  __device__ __forceinline__ void store(const WgmmaOutput& out, const float* sums, int column, int tile, int tiles,
                                        int part, int parts, uint32_t first_rank) const {
    __shared__ float4 group_sums[kGroups][kQuads];
    float4 total = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      const int row = begin_ + i * kGroups;
      if (row >= end_) break;
      const float* const here = sums + row * kPitch + quad_ * 4;
      float4 sum = load_shared_of(here, first_rank);
      for (int other = 1; other < parts; ++other) {
        sum = sum + load_shared_of(here, first_rank + static_cast<uint32_t>(other));
      }
      sum = masked(sum, mask_[i]);
      total = total + sum;
      *reinterpret_cast<float4*>(out.y + at_ + int64_t{i} * kGroups * out.rows) = sum;
    }
    group_sums[group_][quad_] = total;
    __syncthreads();
    const int in_tile = static_cast<int>(threadIdx.x), thread_column = column + in_tile;
    const bool adds = in_tile < kQuads * 4 && thread_column < out.rows;
    if (adds) {
      float sum = 0.0F;
#pragma unroll
      for (int other = 0; other < kGroups; ++other) {
        sum += reinterpret_cast<const float*>(&group_sums[other][0])[in_tile];
      }
      out.mask.parts[int64_t{tile * parts + part} * out.rows + thread_column] = sum;
    }
    const BlockTurn turn(out.mask.counters + column / T::kRows, static_cast<unsigned>(tiles * parts));
    if (!turn.is_last() || !adds) return;
    out.mask.sums[thread_column] = sum_of_parts(out.mask.parts, tiles * parts, out.rows, thread_column);
  }

 private:
  int group_, quad_;
  int begin_, end_;  // rows of the tile
  int64_t at_;
  float4 mask_[kMost];
};

struct NoMaskedShare {
  __device__ __forceinline__ NoMaskedShare(const WgmmaOutput&, int, int, int, int) {}
};

// A cluster is `parts` blocks, side by side in the grid, for each of one or two tiles, one below the other.
template <class T, bool kTransposed, bool kMasked = false>
__global__ __launch_bounds__(T::kThreads, T::kConsumers == 1 && !kMasked ? 2 : 1) void wgmma_split(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, WgmmaOutput out, int row_tiles,
    int share, int blocks) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  static_assert(Sums<T, kTransposed>::kBytes <= T::kStages * T::kStageBytes);
  extern __shared__ uint8_t shared[];
  __shared__ RingBarriers<T> barriers;
  const int parts = static_cast<int>(gridDim.x);
  const int part = static_cast<int>(blockIdx.x);
  const int tile = static_cast<int>(blockIdx.y);
  const int in_cluster = tile % share;
  Ring<T> ring =
      make_ring<T>(shared, barriers, a, b,
                   {.a = {}, .b = {.count = share, .index = in_cluster, .first_rank = part, .rank_step = parts}});
  float* const sums = reinterpret_cast<float*>(ring.stages);
  begin_ring(share);

  const int row = tile % row_tiles * T::kRows, column = tile / row_tiles * T::kColumns;
  const int first = blocks * part / parts;
  const int last = blocks * (part + 1) / parts;

  using Masked = std::conditional_t<kMasked, MaskedShare<T>, NoMaskedShare>;
  const Masked masked_share(out, row, tile / row_tiles, part, parts);
  const int warpgroup = warpgroup_index();
  if (warpgroup == 0) {
    if (threadIdx.x == 0) produce(ring, a, b, row, column, first, last);
    __syncwarp();
    __syncthreads();
  } else {
    const int consumer = warpgroup - 1;
    const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    const int thread_row = consumer * 64 + row_of_thread<T>(thread), thread_column = thread % 4 * 2;
    float d[T::kColumns / 2];
    consume(ring, d, consumer, thread, last - first, last - first);
    __syncthreads();  // the ring is read to its end, and no copies are still to come
    if constexpr (kMasked) {
      leave_sums<T, kTransposed>(d, sums, thread_row, thread_column);
    } else if (parts == 1) {
      store<T, kTransposed>(d, out, row, column, thread_row, thread_column);
    } else {
      leave_sums<T, kTransposed>(d, sums, thread_row, thread_column);
    }
  }
  if constexpr (kMasked) {
    cluster_sync();
    masked_share.store(out, sums, row, tile / row_tiles, static_cast<int>(gridDim.y) / row_tiles, part, parts,
                       static_cast<uint32_t>(in_cluster * parts));
  } else if (parts > 1) {
    cluster_sync();
    store_share<T, kTransposed>(out, sums, row, column, part, parts, static_cast<uint32_t>(in_cluster * parts));
  }
  // None ends while another reads its sums, or multicasts to it and arrives here.
  if (parts > 1 || share > 1) cluster_sync();
#endif
}

}  // namespace gpunn::cuda_tiled
