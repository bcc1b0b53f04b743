// The kernel of ATTENTION. A thread block holds 64 queries of a head and walks over its keys. The softmax is computed
// online, tile by tile: a larger score scales down the sums so far. While one tile is multiplied, the next one is
// copied.
#pragma once

#include <cmath>
#include <cstdint>

#include "attention/tile_rows.cuh"
#include "common/attention.hpp"
#include "cuda_common/divide_up.hpp"

namespace gpunn::cuda_tiled {

// Exponents are of 2.
constexpr float kLog2OfE = 1.4426950408889634F, kLogOf2 = 0.6931471805599453F;

template <class Element>
struct AttentionForward {
  const Element* q;
  const Element* k;
  const Element* v;
  Element* y;
  float* lse;
  backends::Attention shape;
  bool vectors;
};

// The rows of a head in a tensor that begins at `data`.
template <class Element>
__device__ __forceinline__ HeadRows<Element> query_rows(const backends::Attention& s, Element* data, int64_t head) {
  return {data + s.queries_at(head / s.heads, head % s.heads), s.stride(), static_cast<int>(s.queries),
          static_cast<int>(s.width)};
}
template <class Element>
__device__ __forceinline__ HeadRows<Element> key_rows(const backends::Attention& s, Element* data, int64_t head) {
  return {data + s.keys_at(head / s.heads, head % s.heads), s.stride(), static_cast<int>(s.keys),
          static_cast<int>(s.width)};
}

template <class Tile>
struct ForwardShared {
  static constexpr int kOwnElements = Tile::kRows * Tile::kStride;
  static constexpr int kTileElements = Tile::kColumns * Tile::kStride;
  static constexpr int kElements = kOwnElements + 4 * kTileElements;
  static constexpr int kBytes =
      kElements * static_cast<int>(sizeof(typename Tile::Element)) + Tile::kWeights * static_cast<int>(sizeof(float));
};

// A tile of scores becomes weights, and the sums of each row go on.
template <class Tile>
__device__ __forceinline__ void weigh(float (&x)[Tile::kOwn][Tile::kScores], int columns, float scale,
                                      float (&most)[Tile::kOwn], float (&sum)[Tile::kOwn],
                                      float (&mixed)[Tile::kOwn][Tile::kMixed]) {
#pragma unroll
  for (int r = 0; r < Tile::kOwn; ++r) {
    float largest = -INFINITY;
#pragma unroll
    for (int c = 0; c < Tile::kScores; ++c) {
      x[r][c] = Tile::score_column(c) < columns ? x[r][c] * scale : -INFINITY;
      largest = fmaxf(largest, x[r][c]);
    }
    largest = Tile::among_row(largest, [](float a, float b) { return fmaxf(a, b); });
    largest = fmaxf(largest, most[r]);
    const float from = largest == -INFINITY ? 0.0F : largest;
    const float shrink = exp2f(most[r] - from);
    float added = 0.0F;
#pragma unroll
    for (int c = 0; c < Tile::kScores; ++c) {
      x[r][c] = exp2f(x[r][c] - from);
      added += x[r][c];
    }
    sum[r] = sum[r] * shrink + added;
    most[r] = largest;
#pragma unroll
    for (int c = 0; c < Tile::kMixed; ++c) mixed[r][c] *= shrink;
  }
}

template <class Tile>
__global__ __launch_bounds__(Tile::kThreads) void attention_forward(AttentionForward<typename Tile::Element> in) {
  using Element = typename Tile::Element;
  using Shared = ForwardShared<Tile>;
  extern __shared__ float4 shared_memory[];
  auto* own = reinterpret_cast<Element*>(shared_memory);
  Element* const tiles = own + Shared::kOwnElements;  // k, v; and once more
  auto* weights = reinterpret_cast<float*>(own + Shared::kElements);

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

  float mixed[Tile::kOwn][Tile::kMixed], most[Tile::kOwn], sum[Tile::kOwn];
#pragma unroll
  for (int r = 0; r < Tile::kOwn; ++r) {
    most[r] = -INFINITY;
    sum[r] = 0.0F;
#pragma unroll
    for (int c = 0; c < Tile::kMixed; ++c) mixed[r][c] = 0.0F;
  }

  const bool busy = first + Tile::first_row() < s.queries;  // a warp beyond the last query only copies
  const auto steps = static_cast<int>(cuda::divide_up(s.keys, Tile::kColumns));
  copy_rows<Tile, Tile::kRows>(own, query_rows(s, in.q, head), first, in.vectors);
  copy_tile(0);
  commit_copies();
  for (int i = 0; i < steps; ++i) {
    if (i + 1 < steps) copy_tile(i + 1);
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    const Element* tile = tiles + i % 2 * 2 * Shared::kTileElements;
    if (busy) {
      const int columns = k.count - i * Tile::kColumns;
      float x[Tile::kOwn][Tile::kScores];
      Tile::score(own, tile, columns, x);
      weigh<Tile>(x, columns, s.scale * kLog2OfE, most, sum, mixed);
      Tile::mix(x, tile + Shared::kTileElements, columns, weights, mixed);
    }
    __syncthreads();  // the tile has been read
  }

  float factor[Tile::kOwn];
#pragma unroll
  for (int r = 0; r < Tile::kOwn; ++r) {
    const float total = Tile::among_row(sum[r], [](float a, float b) { return a + b; });
    factor[r] = 1.0F / total;
    const int row = first + Tile::row(r);
    if (row < s.queries && Tile::score_column(0) == 0) in.lse[head * s.queries + row] = most[r] * kLogOf2 + logf(total);
  }
  store_rows<Tile>(query_rows(s, in.y, head), first, mixed, factor);
}

}  // namespace gpunn::cuda_tiled
