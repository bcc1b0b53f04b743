// The epilogue of masked.hpp for tile_gemm and cluster_gemm.
#pragma once

#include <cstdint>

#include <cooperative_groups.h>

#include "cuda_common/divide_up.hpp"
#include "gemm/fp32/register_tile.cuh"
#include "gemm/gemm_arguments.cuh"
#include "last_block.cuh"

namespace gpunn::cuda_tiled {

// The row and the column of a block's tile, in tiles.
struct TilePlace {
  int row;
  int column;
};

// Four neighbours of a row of y, zeros outside. No running kernel writes them.
__device__ __forceinline__ float4 quad_of_mask(const GemmArguments& g, int row, int column) {
  float4 quad = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  if (row >= g.m || column >= g.n) return quad;
  const float* const from = g.mask.y + int64_t{row} * g.n + column;
  if (g.n % 4 == 0) return __ldg(reinterpret_cast<const float4*>(from));
  quad.x = __ldg(from);
  if (column + 1 < g.n) quad.y = __ldg(from + 1);
  if (column + 2 < g.n) quad.z = __ldg(from + 2);
  if (column + 3 < g.n) quad.w = __ldg(from + 3);
  return quad;
}

// Masks a thread's sums; in[j] is the sum of those of its column j. Loads as much of the mask at a time as the
// registers hold.
template <class Shape>
__device__ __forceinline__ void mask_sums(const GemmArguments& g, const ThreadPlace<Shape>& place, int first_row,
                                          int first_column, float (&sums)[Shape::kThreadM][Shape::kThreadN],
                                          float (&in)[Shape::kThreadN]) {
  constexpr int kQuads = Shape::kThreadM * Shape::kThreadN / 4;
  constexpr int kAhead = kQuads > 16 ? 16 : kQuads > 8 ? 8 : kQuads;
#pragma unroll
  for (int j = 0; j < Shape::kThreadN; ++j) in[j] = 0.0F;
#pragma unroll
  for (int first = 0; first < kQuads; first += kAhead) {
    float4 y[kAhead];
#pragma unroll
    for (int quad = 0; quad < kAhead; ++quad) {
      const int i = (first + quad) % Shape::kThreadM, j = (first + quad) / Shape::kThreadM * 4;
      y[quad] = quad_of_mask(g, first_row + place.row(i), first_column + place.column(j));
    }
#pragma unroll
    for (int quad = 0; quad < kAhead; ++quad) {
      const int i = (first + quad) % Shape::kThreadM, j = (first + quad) / Shape::kThreadM * 4;
      float* const sum = &sums[i][j];
      in[j] += sum[0] = masked(sum[0], y[quad].x);
      in[j + 1] += sum[1] = masked(sum[1], y[quad].y);
      in[j + 2] += sum[2] = masked(sum[2], y[quad].z);
      in[j + 3] += sum[3] = masked(sum[3], y[quad].w);
    }
  }
}

// Replaces store_sums.
template <class Shape>
__device__ __forceinline__ void store_masked(const GemmArguments& g, const ThreadPlace<Shape>& place, float* shared,
                                             const TilePlace& tile, float (&sums)[Shape::kThreadM][Shape::kThreadN]) {
  constexpr int kGroups = Shape::kBlockM / Shape::kThreadM;  // of threads that have the same columns
  static_assert(kGroups * Shape::kBlockN * 4 <= Shape::kSharedBytes);
  const int rows = cuda::divide_up(g.m, Shape::kBlockM);  // of tiles
  const int first_row = tile.row * Shape::kBlockM;
  const int first_column = tile.column * Shape::kBlockN;
  const bool stores = Shape::kSlices == 1 || place.slice == 0;
  __syncthreads();  // no thread reads a tile any more
  if (stores) {
    float in[Shape::kThreadN];
    mask_sums<Shape>(g, place, first_row, first_column, sums, in);
    const int group = place.warp_row / Shape::kWarpM * Shape::kLanesM + place.lane_row;
#pragma unroll
    for (int j = 0; j < Shape::kThreadN; j += 4) {
      *reinterpret_cast<float4*>(shared + group * Shape::kBlockN + place.column(j)) =
          make_float4(in[j], in[j + 1], in[j + 2], in[j + 3]);
    }
  }
  __syncthreads();
  const auto each_column = [&](const auto& with) {
    for (int i = static_cast<int>(threadIdx.x); i < Shape::kBlockN; i += Shape::kThreads) {
      if (first_column + i < g.n) with(i, first_column + i);
    }
  };
  float* const parts = rows == 1 ? g.mask.sums : g.mask.parts + int64_t{tile.row} * g.n;
  each_column([&](int i, int column) {
    float sum = 0.0F;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) sum += shared[group * Shape::kBlockN + i];
    parts[column] = sum;
  });
  const auto store = [&] {
    if (!stores) return;
#pragma unroll
    for (int j = 0; j < Shape::kThreadN; j += 4) {
      const int column = first_column + place.column(j);
#pragma unroll
      for (int i = 0; i < Shape::kThreadM; ++i) {
        const int row = first_row + place.row(i);
        const float* const sum = &sums[i][j];
        if (row < g.m) store_quad(g.y, g, row, column, make_float4(sum[0], sum[1], sum[2], sum[3]));
      }
    }
  };
  if (rows == 1) return store();
  const BlockTurn turn(g.mask.counters + tile.column, static_cast<unsigned>(rows));
  store();
  if (!turn.is_last()) return;
  each_column([&](int, int column) { g.mask.sums[column] = sum_of_parts(g.mask.parts, rows, g.n, column); });
}

// The epilogue of a block in a cluster of at least two. Each block has whole rows of the tile. The mask is loaded
// before the product.
template <class Shape>
class ClusterMask {
  static constexpr int kRows = Shape::kThreads / Shape::kBlockN;  // at a time
  static constexpr int kMost = (Shape::kBlockM / 2 + kRows - 1) / kRows;
  static_assert(kRows * Shape::kBlockN == Shape::kThreads && Shape::kBlockM % 2 == 0);

 public:
  __device__ __forceinline__ ClusterMask(const GemmArguments& g, const TilePlace& tile)
      : in_tile_(static_cast<int>(threadIdx.x) % Shape::kBlockN), column_(tile.column * Shape::kBlockN + in_tile_) {
    const int share = cuda::divide_up(Shape::kBlockM, static_cast<int>(gridDim.z));
    const int begin = static_cast<int>(blockIdx.z) * share;
    row_ = begin + static_cast<int>(threadIdx.x) / Shape::kBlockN;
    const int first_row = tile.row * Shape::kBlockM;
    end_ = column_ < g.n ? min(min(begin + share, Shape::kBlockM), g.m - first_row) : 0;
    at_ = int64_t{first_row + row_} * g.n + column_;
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      y_[i] = 0.0F;
      if (row_ + i * kRows >= end_) continue;
      // Volatile: the compiler may not put it off until the number is used.
      asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(y_[i]) : "l"(g.mask.y + at_ + int64_t{i} * kRows * g.n));
    }
  }

  // Replaces the end of cluster_gemm: reads the sums from the shared memory of all blocks.
  __device__ __forceinline__ void store(const GemmArguments& g, const float* shared, int stride,
                                        const TilePlace& tile) const {
#if __CUDA_ARCH__ >= 900
    namespace groups = cooperative_groups;
    const groups::cluster_group cluster = groups::this_cluster();
    __shared__ float in[kRows][Shape::kBlockN];
    const int ranks = static_cast<int>(gridDim.z);
    float column_sum = 0.0F;
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      const int row = row_ + i * kRows;
      if (row >= end_) break;
      float part[8];
#pragma unroll
      for (int rank = 0; rank < 8; ++rank) {
        part[rank] = rank < ranks ? cluster.map_shared_rank(shared, rank)[row * stride + in_tile_] : 0.0F;
      }
      float sum = part[0];
#pragma unroll
      for (int rank = 1; rank < 8; ++rank) sum += part[rank];
      sum = masked(sum, y_[i]);
      g.y[at_ + int64_t{i} * kRows * g.n] = sum;
      column_sum += sum;
    }
    const int thread_row = static_cast<int>(threadIdx.x) / Shape::kBlockN;
    in[thread_row][in_tile_] = column_sum;
    __syncthreads();
    const int parts = cuda::divide_up(g.m, Shape::kBlockM) * ranks;
    const bool adds = thread_row == 0 && column_ < g.n;
    if (adds) {
      float sum = 0.0F;
#pragma unroll
      for (int row = 0; row < kRows; ++row) sum += in[row][in_tile_];
      g.mask.parts[int64_t{tile.row * ranks + static_cast<int>(blockIdx.z)} * g.n + column_] = sum;
    }
    const BlockTurn turn(g.mask.counters + tile.column, static_cast<unsigned>(parts));
    if (turn.is_last() && adds) g.mask.sums[column_] = sum_of_parts(g.mask.parts, parts, g.n, column_);
#endif
  }

 private:
  int in_tile_, column_;
  int row_, end_;  // of the tile
  int64_t at_;
  float y_[kMost];
};

struct NoMask {
  template <class... Ignored>
  __device__ __forceinline__ explicit NoMask(const Ignored&...) {}
};

}  // namespace gpunn::cuda_tiled
