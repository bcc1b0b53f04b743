// The kernels of gemm:stream_k: the product, and the sum of the blocks' parts.
#pragma once

#include <cstdint>

#include "cuda_common/divide_up.hpp"
#include "dependent_launch.cuh"
#include "gemm/fp32/register_tile.cuh"
#include "gemm/fp32/shared_sums.cuh"
#include "gemm/fp32/tile_gemm.cuh"
#include "gemm/gemm_arguments.cuh"

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
    return tile_place(tile, cuda::divide_up(g.m, Shape::kBlockM), cuda::divide_up(g.n, Shape::kBlockN));
  }
};

// The part that a block has of a tile, as [sum][thread of a slice]. A float at a time: a quad would have to lie in
// registers as one, for which the products before would pay (shared_sums.cuh).
template <class Shape>
__device__ __forceinline__ void store_part(float* part, const ThreadPlace<Shape>& place,
                                           const float (&sums)[Shape::kThreadM][Shape::kThreadN]) {
  if (Shape::kSlices > 1 && place.slice > 0) return;
  part += threadIdx.x % kThreadsOfSlice<Shape>;
#pragma unroll
  for (int i = 0; i < Shape::kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < Shape::kThreadN; ++j) {
      __stcg(part + (i * Shape::kThreadN + j) * kThreadsOfSlice<Shape>, sums[i][j]);
    }
  }
}

// Whether the sums of the slices are added in shared memory before they are stored.
template <class Shape>
constexpr bool kSlicesMeetLate = Shape::kSlices > 1 && !Shape::kSettled;

// Stores y for the tiles that a block has whole. grid: (blocks)
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
    const bool whole = count == s.steps_of_tile;
    float* const part = s.parts + int64_t{2 * block + (first == 0 ? 1 : 0)} * Shape::kBlockM * Shape::kBlockN;
    const int row = at.row * Shape::kBlockM;
    const int column = at.column * Shape::kBlockN;
    if constexpr (kSlicesMeetLate<Shape>) {
      slice_tile<Shape>(place, shared, count, load_a, load_b, sums);
      auto* const quads = reinterpret_cast<float4*>(part) + threadIdx.x % kThreadsOfSlice<Shape>;
      const float4 bias = bias_of_quads(s.g, place, column);
      take_sums<Shape>(place, shared, sums, [&](int quad, const float4& sum) {
        if (whole) {
          store_sum<Shape>(s.g, place, row, column, quad, sum, bias);
        } else {
          __stcg(quads + quad * kThreadsOfSlice<Shape>, sum);
        }
      });
    } else {
      register_tile<Shape>(place, shared, count, load_a, load_b, sums);
      if (whole) {
        store_sums<Shape>(s.g, s.g.y, place, row, column, sums);
      } else {
        store_part<Shape>(part, place, sums);
      }
    }
  }
  let_next_kernel_start();
}

// How add_stream_k_parts goes about it: a thread adds `quads` of its place's and asks for so many parts at a time. Of
// tiles that many blocks share more parts, so that a thread does not wait for one round of them after the other.
struct FewParts {
  static constexpr int kQuads = 2;
  static constexpr int kAhead = 4;
};
struct ManyParts {
  static constexpr int kQuads = 1;
  static constexpr int kAhead = 8;
};

template <class Shape>
__device__ __forceinline__ float4 quad_of_part(const float* part, int quad) {
  constexpr int kStride = kThreadsOfSlice<Shape>;
  const int thread = static_cast<int>(threadIdx.x);
  if constexpr (kSlicesMeetLate<Shape>) {
    return __ldcg(reinterpret_cast<const float4*>(part) + quad * kStride + thread);
  } else {
    part += quad * 4 * kStride + thread;
    return make_float4(__ldcg(part), __ldcg(part + kStride), __ldcg(part + 2 * kStride), __ldcg(part + 3 * kStride));
  }
}

// y of the tiles whose steps several blocks made: their parts, added in the order of k.
// grid: (tiles, quads of a thread's sums / How::kQuads)
template <class Shape, class How>
__global__ void __launch_bounds__(kThreadsOfSlice<Shape>) add_stream_k_parts(const StreamKArguments s) {
  const int tile = static_cast<int>(blockIdx.x);
  const int first = s.block_of(tile * s.steps_of_tile);
  const int last = s.block_of((tile + 1) * s.steps_of_tile - 1);
  const int first_quad = static_cast<int>(blockIdx.y) * How::kQuads;
  const ThreadPlace<Shape> place(static_cast<int>(threadIdx.x));
  const TilePlace at = s.place_of<Shape>(tile);
  wait_for_kernel_before();
  if (first == last) return;
  float4 sums[How::kQuads];
#pragma unroll
  for (int q = 0; q < How::kQuads; ++q) sums[q] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
#pragma unroll 1
  for (int block = first; block <= last; block += How::kAhead) {
    float4 parts[How::kAhead][How::kQuads];
#pragma unroll
    for (int i = 0; i < How::kAhead; ++i) {
      // The first of the blocks begins the tile, the others begin in the middle of it.
      const float* const part =
          s.parts + int64_t{2 * (block + i) + (block + i == first ? 1 : 0)} * Shape::kBlockM * Shape::kBlockN;
#pragma unroll
      for (int q = 0; q < How::kQuads; ++q) {
        parts[i][q] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
        if (block + i <= last) parts[i][q] = quad_of_part<Shape>(part, first_quad + q);
      }
    }
#pragma unroll
    for (int i = 0; i < How::kAhead; ++i) {
#pragma unroll
      for (int q = 0; q < How::kQuads; ++q) {
        sums[q] = make_float4(sums[q].x + parts[i][q].x, sums[q].y + parts[i][q].y, sums[q].z + parts[i][q].z,
                              sums[q].w + parts[i][q].w);
      }
    }
  }
#pragma unroll
  for (int q = 0; q < How::kQuads; ++q) {
    const int column = at.column * Shape::kBlockN;
    const float4 bias = bias_of_quad(s.g, column + column_of_quad(place, first_quad + q));
    store_sum<Shape>(s.g, place, at.row * Shape::kBlockM, column, first_quad + q, sums[q], bias);
  }
}

}  // namespace gpunn::cuda_tiled
