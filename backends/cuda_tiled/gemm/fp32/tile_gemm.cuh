// Matrix products based on register_tile: y[m, n] = op(a) op(b) with an epilogue, for any tile shape and all four
// transposes.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cooperative_groups.h>

#include "cuda_common/divide_up.hpp"
#include "gemm/fp32/masked_tile.cuh"
#include "gemm/fp32/matrix_loader.cuh"
#include "gemm/fp32/register_tile.cuh"
#include "gemm/fp32/shared_sums.cuh"
#include "gemm/gemm_arguments.cuh"

namespace gpunn::cuda_tiled {

// Which tile a block makes: groups of 8 rows of tiles, column by column. The blocks that run at the same time then
// share few rows of a and few columns of b, which the second-level cache holds.
__device__ __forceinline__ TilePlace tile_place(int block, int rows, int columns) {
  constexpr int kGroup = 8;
  const int group = block / (kGroup * columns);
  const int in_group = block - group * kGroup * columns;
  const int height = min(kGroup, rows - group * kGroup);
  return {group * kGroup + in_group % height, in_group / height};
}

// The tile of this block, of a y [m, n].
template <class Shape>
__device__ __forceinline__ TilePlace tile_of_block(int m, int n) {
  const int rows = cuda::divide_up(m, Shape::kBlockM);
  const int columns = cuda::divide_up(n, Shape::kBlockN);
  return tile_place(static_cast<int>(blockIdx.x), rows, columns);
}

// How tiles are fetched: by copies of 4 bytes, so that rows may have any length; by quads, of which rows must be whole,
// and those of an operand that must be transposed through registers; or by quads, but such an operand by copies of 4
// bytes, of which several tiles can be on their way.
constexpr int kByFloats = 4;
constexpr int kByQuads = 16;
constexpr int kByQuadsAndCopies = 20;

template <class Shape>
constexpr LoadedTile kLoadedA = {
    .outer = Shape::kBlockM, .k = Shape::kBlockK, .stride = Shape::kStrideM, .threads = Shape::kThreads};
template <class Shape>
constexpr LoadedTile kLoadedB = {
    .outer = Shape::kBlockN, .k = Shape::kBlockK, .stride = Shape::kStrideN, .threads = Shape::kThreads};

// The loader for a matrix [k, outer], or [outer, k] if KLast.
template <bool KLast, int Bytes, LoadedTile tile>
__device__ __forceinline__ auto loader_of(const float* matrix, int outer, int size_k, int first_outer, int first_k,
                                          int end_k) {
  const int thread = static_cast<int>(threadIdx.x);
  if constexpr (!KLast) {
    constexpr int kCopied = Bytes == kByFloats ? 4 : 16;
    return StraightLoader<tile, kCopied>(matrix, outer, first_outer, first_k, end_k, thread);
  } else if constexpr (Bytes == kByQuads) {
    return QuadLoader<tile>(matrix, outer, size_k, first_outer, first_k, end_k, thread);
  } else {
    return TransposingLoader<tile>(matrix, outer, size_k, first_outer, first_k, end_k, thread);
  }
}

template <class Shape, bool Transpose, int Bytes>
__device__ __forceinline__ auto loader_of_a(const GemmArguments& g, int first_row, int first_k, int end_k) {
  return loader_of<!Transpose, Bytes, kLoadedA<Shape>>(g.a, g.m, g.k, first_row, first_k, end_k);
}

template <class Shape, bool Transpose, int Bytes>
__device__ __forceinline__ auto loader_of_b(const GemmArguments& g, int first_column, int first_k, int end_k) {
  return loader_of<Transpose, Bytes, kLoadedB<Shape>>(g.b, g.n, g.k, first_column, first_k, end_k);
}

template <class Shape>
__device__ __forceinline__ void store_sums(const GemmArguments& g, float* y, const ThreadPlace<Shape>& place,
                                           int first_row, int first_column,
                                           const float (&sums)[Shape::kThreadM][Shape::kThreadN]) {
  if (Shape::kSlices > 1 && place.slice > 0) return;
#pragma unroll
  for (int j = 0; j < Shape::kThreadN; j += 4) {
    const int column = first_column + place.column(j);
    const float4 bias = bias_of_quad(g, column);
#pragma unroll
    for (int i = 0; i < Shape::kThreadM; ++i) {
      const int row = first_row + place.row(i);
      if (row < g.m) store_quad(y, g, row, column, finish_quad(g.epilogue, &sums[i][j], bias));
    }
  }
}

// The same for four sums from take_sums.
template <class Shape>
__device__ __forceinline__ void store_sum(const GemmArguments& g, const ThreadPlace<Shape>& place, int first_row,
                                          int first_column, int quad, const float4& sum, const float4& bias) {
  const int row = first_row + row_of_quad(place, quad);
  const float values[4] = {sum.x, sum.y, sum.z, sum.w};
  const int column = first_column + column_of_quad(place, quad);
  if (row < g.m) store_quad(g.y, g, row, column, finish_quad(g.epilogue, values, bias));
}

// The bias of the quads that take_sums gives to a thread: all are of the same columns.
template <class Shape>
__device__ __forceinline__ float4 bias_of_quads(const GemmArguments& g, const ThreadPlace<Shape>& place,
                                                int first_column) {
  static_assert(Shape::kSlices % (Shape::kThreadN / 4) == 0);
  return bias_of_quad(g, first_column + column_of_quad(place, place.slice));
}

// grid: (tiles, 1, splits). Masked: with the epilogue of masked.hpp; one split.
template <class Shape, bool TransposeA, bool TransposeB, int Bytes, bool Masked = false>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kMinBlocks) tile_gemm(GemmArguments g) {
  extern __shared__ __align__(16) float shared[];
  const TilePlace tile = tile_of_block<Shape>(g.m, g.n);
  const int first_row = tile.row * Shape::kBlockM;
  const int first_column = tile.column * Shape::kBlockN;
  const int first_k = static_cast<int>(blockIdx.z) * g.k_of_split;
  const int end_k = min(g.k, first_k + g.k_of_split);
  auto load_a = loader_of_a<Shape, TransposeA, Bytes>(g, first_row, first_k, end_k);
  auto load_b = loader_of_b<Shape, TransposeB, Bytes>(g, first_column, first_k, end_k);
  const ThreadPlace<Shape> place(static_cast<int>(threadIdx.x));
  float sums[Shape::kThreadM][Shape::kThreadN];
  register_tile<Shape>(place, shared, cuda::divide_up(end_k - first_k, Shape::kBlockK), load_a, load_b, sums);
  if constexpr (Masked) {
    store_masked<Shape>(g, place, shared, tile, sums);
  } else {
    store_sums<Shape>(g, g.y + int64_t{blockIdx.z} * g.m * g.n, place, first_row, first_column, sums);
  }
}

// The same for a cluster of blocks along z, each with its share of k. The partial sums never leave the cluster: each
// block adds a share of the rows of the tile out of the shared memory of all, in the order of their rank.
template <class Shape, bool TransposeA, bool TransposeB, int Bytes, bool Masked = false>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kMinBlocks) cluster_gemm(GemmArguments g) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) float shared[];
  namespace groups = cooperative_groups;
  const groups::cluster_group cluster = groups::this_cluster();
  const TilePlace tile = tile_of_block<Shape>(g.m, g.n);
  const int first_row = tile.row * Shape::kBlockM;
  const int first_column = tile.column * Shape::kBlockN;
  const int first_k = min(g.k, static_cast<int>(blockIdx.z) * g.k_of_split);
  const int end_k = min(g.k, first_k + g.k_of_split);
  auto load_a = loader_of_a<Shape, TransposeA, Bytes>(g, first_row, first_k, end_k);
  auto load_b = loader_of_b<Shape, TransposeB, Bytes>(g, first_column, first_k, end_k);
  const ThreadPlace<Shape> place(static_cast<int>(threadIdx.x));
  const std::conditional_t<Masked, ClusterMask<Shape>, NoMask> mask(g, tile);
  float sums[Shape::kThreadM][Shape::kThreadN];
  register_tile<Shape>(place, shared, cuda::divide_up(end_k - first_k, Shape::kBlockK), load_a, load_b, sums);

  constexpr int kStride = Shape::kBlockN + 4;
  static_assert(Shape::kBlockM * kStride * 4 <= Shape::kSharedBytes);
  __syncthreads();
  if (place.slice == 0) {
#pragma unroll
    for (int i = 0; i < Shape::kThreadM; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::kThreadN; j += 4) {
        *reinterpret_cast<float4*>(shared + place.row(i) * kStride + place.column(j)) =
            make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
      }
    }
  }
  cluster.sync();
  if constexpr (Masked) {
    mask.store(g, shared, kStride, tile);
    cluster.sync();
    return;
  }
  const int ranks = static_cast<int>(gridDim.z);
  const int share = cuda::divide_up(Shape::kBlockM * Shape::kBlockN, ranks);
  const int begin = static_cast<int>(blockIdx.z) * share;
  const int end = min(begin + share, Shape::kBlockM * Shape::kBlockN);
  for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += Shape::kThreads) {
    const int row = i / Shape::kBlockN;
    const int column = i % Shape::kBlockN;
    if (first_row + row >= g.m || first_column + column >= g.n) continue;
    float part[8];
#pragma unroll
    for (int rank = 0; rank < 8; ++rank) {
      part[rank] = rank < ranks ? cluster.map_shared_rank(shared, rank)[row * kStride + column] : 0.0F;
    }
    float sum = part[0];
#pragma unroll
    for (int rank = 1; rank < 8; ++rank) sum += part[rank];
    g.y[int64_t{first_row + row} * g.n + first_column + column] = finish_at(g.epilogue, sum, first_column + column);
  }
  cluster.sync();  // no block leaves while its shared memory is read
#endif
}

}  // namespace gpunn::cuda_tiled
