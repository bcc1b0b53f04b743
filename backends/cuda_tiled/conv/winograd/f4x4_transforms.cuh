// The transforms of F(4x4, 3x3) and F(3x3, 4x4), at 36 points: the products of two sets of six. The six points are 0,
// 1, -1, 1/2, -2 and infinity, whose powers go up and down. The usual six, 0, 1, -1, 2, -2 and infinity, lose three
// times as many digits. Barabasz et al. (2020) say which points are good.
#pragma once

#include <algorithm>

#include "conv/winograd/winograd.hpp"
#include "cuda_common/divide_up.hpp"

namespace gpunn::cuda_tiled::winograd {

inline constexpr int kLargePoints = 36;
inline constexpr int kLargeTile = 4;

// B^T of six neighbouring inputs, in place; they are `stride` apart.
template <int stride>
__device__ __forceinline__ void transform_six(float* d) {
  const float d0 = d[0], d1 = d[stride], d2 = d[2 * stride], d3 = d[3 * stride], d4 = d[4 * stride];
  const float d5 = d[5 * stride];
  const float odd = d3 - d1;
  const float even = d4 - d2;
  d[0] = fmaf(1.5F, odd, fmaf(-2.0F, d2, d0 + d4));
  d[stride] = fmaf(2.5F, d3, fmaf(0.5F, d2, d4 - d1));
  d[2 * stride] = fmaf(-2.5F, d2, fmaf(0.5F, d3, d4 + d1));
  d[3 * stride] = fmaf(2.0F, odd, even);
  d[4 * stride] = fmaf(-0.5F, odd, even);
  d[5 * stride] = fmaf(1.5F, even, fmaf(-2.0F, d3, d1 + d5));
}

__device__ __forceinline__ void transform_large_patch(float (&d)[kLargePoints]) {
#pragma unroll
  for (int j = 0; j < 6; ++j) transform_six<6>(d + j);
#pragma unroll
  for (int i = 0; i < 6; ++i) transform_six<1>(d + 6 * i);
}

// G of three or four taps.
template <int taps>
__device__ __forceinline__ void transform_taps(const float (&g)[taps], float (&u)[6]) {
  const float last = taps == 4 ? g[3 % taps] : 0.0F;
  const float even = g[0] + g[2];
  const float odd = g[1] + last;
  u[0] = g[0];
  u[1] = (even + odd) * (1.0F / 3);
  u[2] = (odd - even) * (1.0F / 3);
  u[3] = fmaf(0.125F, last, fmaf(0.25F, g[2], fmaf(0.5F, g[1], g[0]))) * (-16.0F / 15);
  u[4] = fmaf(-8.0F, last, fmaf(4.0F, g[2], fmaf(-2.0F, g[1], g[0]))) * (1.0F / 15);
  u[5] = g[taps - 1];
}

template <int taps>
__device__ __forceinline__ void transform_large_taps(const float (&g)[taps * taps], float (&u)[kLargePoints]) {
  float half[6][taps];
#pragma unroll
  for (int j = 0; j < taps; ++j) {
    float column[taps];
    float points[6];
#pragma unroll
    for (int i = 0; i < taps; ++i) column[i] = g[i * taps + j];
    transform_taps<taps>(column, points);
#pragma unroll
    for (int i = 0; i < 6; ++i) half[i][j] = points[i];
  }
#pragma unroll
  for (int i = 0; i < 6; ++i) {
    float points[6];
    transform_taps<taps>(half[i], points);
#pragma unroll
    for (int j = 0; j < 6; ++j) u[6 * i + j] = points[j];
  }
}

// A^T for three or four results.
template <int results>
__device__ __forceinline__ void transform_back_six(const float (&m)[6], float (&y)[results]) {
  const float sum = m[1] + m[2];
  const float difference = m[1] - m[2];
  y[0] = m[0] + sum + (m[3] + m[4]);
  y[1] = difference + fmaf(-2.0F, m[4], 0.5F * m[3]);
  y[2] = sum + fmaf(4.0F, m[4], 0.25F * m[3]);
  if constexpr (results == 4) y[3] = difference + fmaf(-8.0F, m[4], 0.125F * m[3]);
  y[results - 1] += m[5];
}

template <int results>
__device__ __forceinline__ void transform_large_back(const float (&m)[kLargePoints], float (&y)[results * results]) {
  float half[results][6];
#pragma unroll
  for (int j = 0; j < 6; ++j) {
    float column[6];
    float back[results];
#pragma unroll
    for (int i = 0; i < 6; ++i) column[i] = m[6 * i + j];
    transform_back_six<results>(column, back);
#pragma unroll
    for (int i = 0; i < results; ++i) half[i][j] = back[i];
  }
#pragma unroll
  for (int i = 0; i < results; ++i) {
    float back[results];
    transform_back_six<results>(half[i], back);
#pragma unroll
    for (int j = 0; j < results; ++j) y[i * results + j] = back[j];
  }
}

// The tiles of 4x4 of the results of a batch, and the 6x6 patch that each is made from.
struct LargeTiles {
  int rows;
  int columns;
  int count;

  LargeTiles(const Convolution& c, int images)
      : rows((c.result_rows + 3) / 4), columns((c.result_columns + 3) / 4), count(images * rows * columns) {}
};

// The images are processed in chunks, so that a large batch does not need more memory. Chunks that fit the second-level
// cache (24 or 40 MB) take 1.1 to 1.4 times as long, since so few tiles don't fill the GPU.
inline constexpr int64_t kChunkBytes = int64_t{256} << 20;

// Images of a chunk, of which each makes `bytes` of transformed tensors; chunks are about equal.
inline int images_of_chunk(int batch, int64_t bytes) {
  const int64_t most = std::max<int64_t>(kChunkBytes / bytes, 1);
  const int64_t chunks = cuda::divide_up(batch, most);
  return static_cast<int>(cuda::divide_up(batch, chunks));
}

struct LargeTile {
  int image;
  int row;
  int column;

  __device__ LargeTile(int tile, const LargeTiles& tiles)
      : image(tile / (tiles.rows * tiles.columns)),
        row(tile / tiles.columns % tiles.rows * kLargeTile),
        column(tile % tiles.columns * kLargeTile) {}
};

__device__ __forceinline__ void load_large_patch(const float* plane, const Convolution& shape, const LargeTile& tile,
                                                 float (&d)[kLargePoints]) {
  const int row = tile.row - shape.pad_rows;
  const int column = tile.column - shape.pad_columns;
  bool columns[6];
#pragma unroll
  for (int j = 0; j < 6; ++j) columns[j] = column + j >= 0 && column + j < shape.columns;
#pragma unroll
  for (int i = 0; i < 6; ++i) {
    const bool row_inside = row + i >= 0 && row + i < shape.rows;
#pragma unroll
    for (int j = 0; j < 6; ++j) {
      d[6 * i + j] = row_inside && columns[j] ? __ldg(plane + (row + i) * shape.columns + column + j) : 0.0F;
    }
  }
}

inline int multiple_of_four(int n) { return (n + 3) / 4 * 4; }

}  // namespace gpunn::cuda_tiled::winograd
