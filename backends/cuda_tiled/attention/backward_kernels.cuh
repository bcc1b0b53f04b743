// ATTENTION_BACKWARD in three kernels. The first sums dy y by row. In the second a thread block holds 64 keys of a head
// and walks over its queries, for dk and dv. In the third a block holds 64 queries and walks over the keys, for dq. The
// weights are recomputed from lse. One thread sums each number in a fixed order, which a single kernel with atomic
// additions could not do.
#pragma once

#include <cmath>
#include <cstdint>

#include "attention/forward_kernel.cuh"

namespace gpunn::cuda_tiled {

template <class Element>
struct AttentionBackward {
  const Element* dy;
  const Element* q;
  const Element* k;
  const Element* v;
  const float* lse;
  const float* along;  // [samples, heads, queries]
  Element* dq;
  Element* dk;
  Element* dv;
  backends::Attention shape;
  bool vectors;
};

constexpr int kAlongThreads = 256, kAlongRows = kAlongThreads / 32;

// along = the sum of dy y: a warp a row.
template <class Element>
__global__ __launch_bounds__(kAlongThreads) void attention_along(const Element* dy, const Element* y, float* along,
                                                                 backends::Attention s) {
  const int64_t row = int64_t{blockIdx.x} * kAlongRows + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (row >= s.samples * s.queries * s.heads) return;
  float sum = 0.0F;
  for (int64_t i = row * s.width + lane; i < (row + 1) * s.width; i += 32) {
    sum += static_cast<float>(dy[i]) * static_cast<float>(y[i]);
  }
#pragma unroll
  for (int reach = 16; reach > 0; reach /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, reach);
  const int64_t head = row % s.heads, token = row / s.heads % s.queries, sample = row / s.heads / s.queries;
  if (lane == 0) along[(sample * s.heads + head) * s.queries + token] = sum;
}

template <class Tile>
struct BackwardShared {
  static constexpr int kOwnElements = Tile::kRows * Tile::kStride;
  static constexpr int kTileElements = Tile::kColumns * Tile::kStride;
  static constexpr int kElements = 2 * kOwnElements + 4 * kTileElements;
  static constexpr int kBytes = kElements * static_cast<int>(sizeof(typename Tile::Element)) +
                                (Tile::kWeights + 4 * Tile::kColumns) * static_cast<int>(sizeof(float));
};

// A weight is 1 at most, whatever the roundings of its score and of lse.
__device__ __forceinline__ float weight_of(float exponent) { return exp2f(exponent > 0.0F ? 0.0F : exponent); }

template <class Tile>
__device__ __forceinline__ void clear(float (&x)[Tile::kOwn][Tile::kMixed]) {
#pragma unroll
  for (int r = 0; r < Tile::kOwn; ++r) {
#pragma unroll
    for (int c = 0; c < Tile::kMixed; ++c) x[r][c] = 0.0F;
  }
}

// Rows of scores are keys here, and columns are queries.
template <class Tile>
__global__ __launch_bounds__(Tile::kThreads) void attention_dk_dv(AttentionBackward<typename Tile::Element> in) {
  using Element = typename Tile::Element;
  using Shared = BackwardShared<Tile>;
  extern __shared__ float4 shared_memory[];
  auto* own_k = reinterpret_cast<Element*>(shared_memory);
  Element* const own_v = own_k + Shared::kOwnElements;
  Element* const tiles = own_v + Shared::kOwnElements;  // q, dy; and once more
  auto* weights = reinterpret_cast<float*>(own_k + Shared::kElements);
  float* const statistics = weights + Tile::kWeights;  // lse, along; and once more

  const backends::Attention& s = in.shape;
  const auto blocks = static_cast<int>(cuda::divide_up(s.keys, Tile::kRows));
  const int64_t head = blockIdx.x / blocks;
  const int first = static_cast<int>(blockIdx.x) % blocks * Tile::kRows;
  const auto q = query_rows(s, in.q, head), dy = query_rows(s, in.dy, head);
  const auto copy_tile = [&](int i) {
    Element* to = tiles + i % 2 * 2 * Shared::kTileElements;
    copy_rows<Tile, Tile::kColumns>(to, q, i * Tile::kColumns, in.vectors);
    copy_rows<Tile, Tile::kColumns>(to + Shared::kTileElements, dy, i * Tile::kColumns, in.vectors);
    float* to_statistics = statistics + i % 2 * 2 * Tile::kColumns;
    for (int j = static_cast<int>(threadIdx.x); j < Tile::kColumns; j += Tile::kThreads) {
      const int query = i * Tile::kColumns + j;
      const bool there = query < q.count;
      const int64_t at = head * s.queries + query;
      to_statistics[j] = there ? in.lse[at] * kLog2OfE : INFINITY;  // a weight of 0
      to_statistics[Tile::kColumns + j] = there ? in.along[at] : 0.0F;
    }
  };

  float dk[Tile::kOwn][Tile::kMixed], dv[Tile::kOwn][Tile::kMixed];
  clear<Tile>(dk);
  clear<Tile>(dv);
  const float scale = s.scale * kLog2OfE;
  const bool busy = first + Tile::first_row() < s.keys;  // a warp beyond the last key only copies
  const auto steps = static_cast<int>(cuda::divide_up(s.queries, Tile::kColumns));
  copy_rows<Tile, Tile::kRows>(own_k, key_rows(s, in.k, head), first, in.vectors);
  copy_rows<Tile, Tile::kRows>(own_v, key_rows(s, in.v, head), first, in.vectors);
  copy_tile(0);
  commit_copies();
  for (int i = 0; i < steps; ++i) {
    if (i + 1 < steps) copy_tile(i + 1);
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    const Element *tile_q = tiles + i % 2 * 2 * Shared::kTileElements, *tile_dy = tile_q + Shared::kTileElements;
    const float *lse = statistics + i % 2 * 2 * Tile::kColumns, *along = lse + Tile::kColumns;
    if (busy) {
      const int columns = q.count - i * Tile::kColumns;
      float x[Tile::kOwn][Tile::kScores], slopes[Tile::kOwn][Tile::kScores];
      Tile::score(own_k, tile_q, columns, x);
      Tile::score(own_v, tile_dy, columns, slopes);
#pragma unroll
      for (int c = 0; c < Tile::kScores; ++c) {
        const float from = lse[Tile::score_column(c)], mean = along[Tile::score_column(c)];
#pragma unroll
        for (int r = 0; r < Tile::kOwn; ++r) {
          x[r][c] = weight_of(x[r][c] * scale - from);
          slopes[r][c] = x[r][c] * (slopes[r][c] - mean);
        }
      }
      Tile::mix(x, tile_dy, columns, weights, dv);
      Tile::mix(slopes, tile_q, columns, weights, dk);
    }
    __syncthreads();  // the tile has been read
  }

  float one[Tile::kOwn], by_scale[Tile::kOwn];
#pragma unroll
  for (int r = 0; r < Tile::kOwn; ++r) {
    one[r] = 1.0F;
    by_scale[r] = s.scale;
  }
  store_rows<Tile>(key_rows(s, in.dk, head), first, dk, by_scale);
  store_rows<Tile>(key_rows(s, in.dv, head), first, dv, one);
}

template <class Tile>
__global__ __launch_bounds__(Tile::kThreads) void attention_dq(AttentionBackward<typename Tile::Element> in) {
  using Element = typename Tile::Element;
  using Shared = BackwardShared<Tile>;
  extern __shared__ float4 shared_memory[];
  auto* own_q = reinterpret_cast<Element*>(shared_memory);
  Element* const own_dy = own_q + Shared::kOwnElements;
  Element* const tiles = own_dy + Shared::kOwnElements;  // k, v; and once more
  auto* weights = reinterpret_cast<float*>(own_q + Shared::kElements);

  const backends::Attention& s = in.shape;
  const auto blocks = static_cast<int>(cuda::divide_up(s.queries, Tile::kRows));
  const int64_t head = blockIdx.x / blocks;
  const int first = static_cast<int>(blockIdx.x) % blocks * Tile::kRows;
  const auto k = key_rows(s, in.k, head), v = key_rows(s, in.v, head);
  const auto copy_tile = [&](int i) {
    Element* to = tiles + i % 2 * 2 * Shared::kTileElements;
    copy_rows<Tile, Tile::kColumns>(to, k, i * Tile::kColumns, in.vectors);
    copy_rows<Tile, Tile::kColumns>(to + Shared::kTileElements, v, i * Tile::kColumns, in.vectors);
  };

  float dq[Tile::kOwn][Tile::kMixed], lse[Tile::kOwn], along[Tile::kOwn], by_scale[Tile::kOwn];
  clear<Tile>(dq);
#pragma unroll
  for (int r = 0; r < Tile::kOwn; ++r) {
    const int row = first + Tile::row(r);
    const bool there = row < s.queries;
    lse[r] = there ? in.lse[head * s.queries + row] * kLog2OfE : INFINITY;
    along[r] = there ? in.along[head * s.queries + row] : 0.0F;
    by_scale[r] = s.scale;
  }
  const float scale = s.scale * kLog2OfE;
  const bool busy = first + Tile::first_row() < s.queries;
  const auto steps = static_cast<int>(cuda::divide_up(s.keys, Tile::kColumns));
  copy_rows<Tile, Tile::kRows>(own_q, query_rows(s, in.q, head), first, in.vectors);
  copy_rows<Tile, Tile::kRows>(own_dy, query_rows(s, in.dy, head), first, in.vectors);
  copy_tile(0);
  commit_copies();
  for (int i = 0; i < steps; ++i) {
    if (i + 1 < steps) copy_tile(i + 1);
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    const Element *tile_k = tiles + i % 2 * 2 * Shared::kTileElements, *tile_v = tile_k + Shared::kTileElements;
    if (busy) {
      const int columns = k.count - i * Tile::kColumns;
      float x[Tile::kOwn][Tile::kScores], slopes[Tile::kOwn][Tile::kScores];
      Tile::score(own_q, tile_k, columns, x);
      Tile::score(own_dy, tile_v, columns, slopes);
#pragma unroll
      for (int r = 0; r < Tile::kOwn; ++r) {
#pragma unroll
        for (int c = 0; c < Tile::kScores; ++c) {
          const float weight = weight_of(x[r][c] * scale - lse[r]);
          slopes[r][c] = Tile::score_column(c) < columns ? weight * (slopes[r][c] - along[r]) : 0.0F;
        }
      }
      Tile::mix(slopes, tile_k, columns, weights, dq);
    }
    __syncthreads();  // the tile has been read
  }
  store_rows<Tile>(query_rows(s, in.dq, head), first, dq, by_scale);
}

}  // namespace gpunn::cuda_tiled
