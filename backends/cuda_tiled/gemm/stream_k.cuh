// The kernels of gemm:stream_k: what the blocks of a product do, and what a second kernel adds up.
#pragma once

#include <cstdint>

#include "dependent_launch.cuh"
#include "gemm_arguments.cuh"
#include "register_tile.cuh"
#include "tile_gemm.cuh"

namespace gpunn::cuda_tiled {

// A tile is steps_of_tile steps of Shape::kBlockK of its sums, and the steps of all tiles, one tile after the other,
// are shared out evenly among `blocks`.
struct StreamKArguments {
  GemmArguments g;
  float* parts = nullptr;  // [blocks][2][sums of a tile], of a tile that a block begins in the middle and one it begins
  int tiles = 0;
  int steps_of_tile = 0;
  int steps = 0;
  int blocks = 0;

  __device__ __forceinline__ int first_step(int block) const {
    return static_cast<int>(int64_t{steps} * block / blocks);
  }
  __device__ __forceinline__ int block_of(int step) const {
    return static_cast<int>(((int64_t{step} + 1) * blocks - 1) / steps);
  }
  template <class Shape>
  __device__ __forceinline__ TilePlace place_of(int tile) const {
    return tile_place(tile, (g.m + Shape::kBlockM - 1) / Shape::kBlockM, (g.n + Shape::kBlockN - 1) / Shape::kBlockN);
  }
};

template <class Shape>
constexpr int kThreadsWithSums = Shape::kWarps * 32;  // one slice's: it has the sums of all

// The part that a block has of a tile. A float at a time: a quad would have to lie in registers as one, for which the
// products before would pay (register_tile.cuh).
template <class Shape>
__device__ __forceinline__ void store_part(float* part, const ThreadPlace<Shape>& place,
                                           const float (&sums)[Shape::kThreadM][Shape::kThreadN]) {
  if (Shape::kSlices > 1 && place.slice > 0) return;
  part += threadIdx.x % kThreadsWithSums<Shape>;
#pragma unroll
  for (int i = 0; i < Shape::kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < Shape::kThreadN; ++j) {
      __stcg(part + (i * Shape::kThreadN + j) * kThreadsWithSums<Shape>, sums[i][j]);
    }
  }
}

// Of the tiles that a block has whole it makes y. grid: (blocks)
template <class Shape, bool TransposeA, bool TransposeB, int Bytes>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kMinBlocks) stream_k_gemm(const StreamKArguments s) {
  extern __shared__ __align__(16) float shared[];
  const int block = static_cast<int>(blockIdx.x);
  const int end = s.first_step(block + 1);
  const ThreadPlace<Shape> place(static_cast<int>(threadIdx.x));
  int count = 0;
#pragma unroll 1
  for (int step = s.first_step(block); step < end; step += count) {
    const int tile = step / s.steps_of_tile;
    const int first = step - tile * s.steps_of_tile;
    count = min(s.steps_of_tile - first, end - step);
    const TilePlace at = s.place_of<Shape>(tile);
    const int first_k = first * Shape::kBlockK;
    const int end_k = min(s.g.k, first_k + count * Shape::kBlockK);
    auto load_a = loader_of_a<Shape, TransposeA, Bytes>(s.g, at.row * Shape::kBlockM, first_k, end_k);
    auto load_b = loader_of_b<Shape, TransposeB, Bytes>(s.g, at.column * Shape::kBlockN, first_k, end_k);
    float sums[Shape::kThreadM][Shape::kThreadN];
    __syncthreads();  // the tile before is no longer read
    register_tile<Shape>(place, shared, count, load_a, load_b, sums);
    if (count == s.steps_of_tile) {
      store_sums<Shape>(s.g, s.g.y, place, at.row * Shape::kBlockM, at.column * Shape::kBlockN, sums);
    } else {
      const int64_t part = 2 * block + (first == 0 ? 1 : 0);
      store_part<Shape>(s.parts + part * Shape::kBlockM * Shape::kBlockN, place, sums);
    }
  }
  let_next_kernel_start();
}

constexpr int kQuadsAdded = 4;  // of a thread

__device__ __forceinline__ float4 quad_of_part(const float* part, int stride) {
  return make_float4(__ldcg(part), __ldcg(part + stride), __ldcg(part + 2 * stride), __ldcg(part + 3 * stride));
}

// y of the tiles whose steps several blocks made: their parts, added in the order of k.
// grid: (tiles, quads of a thread's sums / kQuadsAdded)
template <class Shape>
__global__ void __launch_bounds__(kThreadsWithSums<Shape>) add_stream_k_parts(const StreamKArguments s) {
  constexpr int kStride = kThreadsWithSums<Shape>;
  constexpr int kTile = Shape::kBlockM * Shape::kBlockN;
  wait_for_kernel_before();
  const int tile = static_cast<int>(blockIdx.x);
  const int first = s.block_of(tile * s.steps_of_tile);
  const int last = s.block_of((tile + 1) * s.steps_of_tile - 1);
  if (first == last) return;
  const int first_quad = static_cast<int>(blockIdx.y) * kQuadsAdded;
  const float* part = s.parts + int64_t{2} * first * kTile + first_quad * 4 * kStride + threadIdx.x;
  float4 sums[kQuadsAdded];
#pragma unroll
  for (int q = 0; q < kQuadsAdded; ++q) sums[q] = quad_of_part(part + kTile + q * 4 * kStride, kStride);
#pragma unroll 2
  for (int block = first + 1; block <= last; ++block) {
    part += 2 * kTile;
#pragma unroll
    for (int q = 0; q < kQuadsAdded; ++q) {
      const float4 more = quad_of_part(part + q * 4 * kStride, kStride);
      sums[q] = make_float4(sums[q].x + more.x, sums[q].y + more.y, sums[q].z + more.z, sums[q].w + more.w);
    }
  }
  const ThreadPlace<Shape> place(static_cast<int>(threadIdx.x));
  const TilePlace at = s.place_of<Shape>(tile);
#pragma unroll
  for (int q = 0; q < kQuadsAdded; ++q) {
    constexpr int kQuadsOfRow = Shape::kThreadN / 4;
    const int row = at.row * Shape::kBlockM + place.row((first_quad + q) / kQuadsOfRow);
    const int column = at.column * Shape::kBlockN + place.column((first_quad + q) % kQuadsOfRow * 4);
    const float values[4] = {sums[q].x, sums[q].y, sums[q].z, sums[q].w};
    if (row < s.g.m) {
      store_quad(s.g.y, s.g, row, column, finish_quad(s.g.epilogue, values, bias_of_quad(s.g, column)));
    }
  }
}

}  // namespace gpunn::cuda_tiled
