// Copies the rows of one head of q, k or v to tiles in shared memory, and stores the rows of results.
#pragma once

#include <cstdint>

#include "async_copy.cuh"

namespace gpunn::cuda_tiled {

template <class Element>
struct HeadRows {
  Element* data;
  int64_t stride;  // from a token to the next
  int count;       // tokens
  int width;
};

// Begins to copy `rows` rows from `first` on to shared memory; zeros stand for rows beyond the last and fill up the
// tile's width. `vectors`: rows begin at 16 bytes and have whole pieces of 16.
template <class Tile, int rows>
__device__ __forceinline__ void copy_rows(typename Tile::Element* to,
                                          const HeadRows<const typename Tile::Element>& from, int first, bool vectors) {
  using Element = typename Tile::Element;
  const int thread = static_cast<int>(threadIdx.x);
  if (vectors) {
    constexpr int kPieces = Tile::kWidth / Tile::kVector;
    for (int i = thread; i < rows * kPieces; i += Tile::kThreads) {
      const int row = i / kPieces, column = i % kPieces * Tile::kVector;
      const bool valid = first + row < from.count && column < from.width;
      const Element* source = valid ? from.data + (first + row) * from.stride + column : from.data;
      copy_async<16>(reinterpret_cast<float*>(to + row * Tile::kStride + column),
                     reinterpret_cast<const float*>(source), valid);
    }
  } else {
    for (int i = thread; i < rows * Tile::kWidth; i += Tile::kThreads) {
      const int row = i / Tile::kWidth, column = i % Tile::kWidth;
      const bool valid = first + row < from.count && column < from.width;
      to[row * Tile::kStride + column] =
          valid ? from.data[(first + row) * from.stride + column] : static_cast<Element>(0.0F);
    }
  }
}

// Stores a result's rows, each times its factor.
template <class Tile>
__device__ __forceinline__ void store_rows(const HeadRows<typename Tile::Element>& to, int first,
                                           const float (&x)[Tile::kOwn][Tile::kMixed],
                                           const float (&factor)[Tile::kOwn]) {
  using Element = typename Tile::Element;
  struct alignas(2 * sizeof(Element)) Pair {
    Element low, high;
  };
  const bool pairs = to.width % 2 == 0;
#pragma unroll
  for (int r = 0; r < Tile::kOwn; ++r) {
    const int row = first + Tile::row(r);
    if (row >= to.count) continue;
    Element* out = to.data + row * to.stride;
#pragma unroll
    for (int c = 0; c < Tile::kMixed; c += 2) {
      const int column = Tile::mixed_column(c);
      const Pair pair{static_cast<Element>(x[r][c] * factor[r]), static_cast<Element>(x[r][c + 1] * factor[r])};
      if (pairs) {
        if (column < to.width) *reinterpret_cast<Pair*>(out + column) = pair;
      } else {
        if (column < to.width) out[column] = pair.low;
        if (column + 1 < to.width) out[column + 1] = pair.high;
      }
    }
  }
}

}  // namespace gpunn::cuda_tiled
