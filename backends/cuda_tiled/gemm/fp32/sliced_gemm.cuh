// The kernel of gemm:12: the warps of a block, and the blocks of a cluster, share the k of a tile.
#pragma once

#include <algorithm>

#include <cooperative_groups.h>

#include "cuda_common/divide_up.hpp"
#include "gemm/fp32/register_tile.cuh"
#include "gemm/fp32/shared_sums.cuh"
#include "gemm/fp32/tile_gemm.cuh"
#include "gemm/gemm_arguments.cuh"

namespace gpunn::cuda_tiled {

constexpr int kMostRanks = 8;  // blocks of a cluster, on any GPU that has clusters

// The sums of all slices reuse the shared memory of the tiles.
template <class Shape>
constexpr int kSlicedBytes = std::max(Shape::kSharedBytes, 4 * Shape::kSlices * Shape::kBlockM * Shape::kBlockN);

// What take_sums has put together in the shared memory of each block of a cluster, added in the order of their ranks:
// by each block a share of the quads.
template <class Shape>
__device__ __forceinline__ void add_ranks(const GemmArguments& g, const float* shared, int first_row,
                                          int first_column) {
#if __CUDA_ARCH__ >= 900
  namespace groups = cooperative_groups;
  const groups::cluster_group cluster = groups::this_cluster();
  constexpr int kStride = kThreadsOfSlice<Shape>;
  constexpr int kQuads = kQuadsOfThread<Shape> * kStride;
  const int ranks = static_cast<int>(gridDim.z);
  const int share = cuda::divide_up(kQuads, ranks);
  const int begin = static_cast<int>(blockIdx.z) * share;
  const int end = min(begin + share, kQuads);
  cluster.sync();
  for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += Shape::kThreads) {
    const int quad = i / kStride;
    const ThreadPlace<Shape> place(i % kStride);
    const int row = first_row + row_of_quad(place, quad);
    const int column = first_column + column_of_quad(place, quad);
    if (row >= g.m || column >= g.n) continue;
    const float4 bias = bias_of_quad(g, column);
    float part[kMostRanks][4];
#pragma unroll
    for (int rank = 0; rank < kMostRanks; ++rank) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int from = (quad * 4 + j) * kStride + i % kStride;
        part[rank][j] = rank < ranks ? cluster.map_shared_rank(shared, rank)[from] : 0.0F;
      }
    }
#pragma unroll
    for (int rank = 1; rank < kMostRanks; ++rank) {
#pragma unroll
      for (int j = 0; j < 4; ++j) part[0][j] += part[rank][j];
    }
    store_quad(g.y, g, row, column, finish_quad(g.epilogue, part[0], bias));
  }
  cluster.sync();  // no block leaves while its shared memory is read
#endif
}

// grid: (tiles, 1, blocks of a cluster)
template <class Shape, bool TransposeA, bool TransposeB, int Bytes>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kMinBlocks) sliced_gemm(GemmArguments g) {
  extern __shared__ __align__(16) float shared[];
  const TilePlace tile = tile_of_block<Shape>(g.m, g.n);
  const int first_row = tile.row * Shape::kBlockM;
  const int first_column = tile.column * Shape::kBlockN;
  const int first_k = min(g.k, static_cast<int>(blockIdx.z) * g.k_of_split);
  const int end_k = min(g.k, first_k + g.k_of_split);
  auto load_a = loader_of_a<Shape, TransposeA, Bytes>(g, first_row, first_k, end_k);
  auto load_b = loader_of_b<Shape, TransposeB, Bytes>(g, first_column, first_k, end_k);
  const ThreadPlace<Shape> place(static_cast<int>(threadIdx.x));
  float sums[Shape::kThreadM][Shape::kThreadN];
  slice_tile<Shape>(place, shared, cuda::divide_up(end_k - first_k, Shape::kBlockK), load_a, load_b, sums);

  const bool whole = gridDim.z == 1;
  const float4 bias = bias_of_quads(g, place, first_column);
  take_sums<Shape>(place, shared, sums, [&](int quad, const float4& sum) {
    if (whole) {
      store_sum<Shape>(g, place, first_row, first_column, quad, sum, bias);
    } else {  // in place, where no other thread reads
      constexpr int kStride = kThreadsOfSlice<Shape>;
      const float values[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) shared[(quad * 4 + i) * kStride + threadIdx.x % kStride] = values[i];
    }
  });
  if (!whole) add_ranks<Shape>(g, shared, first_row, first_column);
}

}  // namespace gpunn::cuda_tiled
