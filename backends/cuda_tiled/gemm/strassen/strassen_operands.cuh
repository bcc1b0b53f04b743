// The factors of the seven products of Strassen's algorithm in Winograd's variant: sums of the quarters of a and of b.
//
//   S1 = A21 + A22    T1 = B12 - B11
//   S2 = S1 - A11     T2 = B22 - T1
//   S3 = A11 - A21    T3 = B22 - B12
//   S4 = A12 - S2     T4 = B21 - T2   (with the other sign than Winograd's, so that its product is added too)
//
// One pass reads a matrix once and writes all factors that the products need, at the speed of memory. The products need
// MN-major factors, with a row for each k: [k][m] and [k][n], as in gemm:11. From an MN-major matrix the pass writes
// only the sums. From the others it also transposes the three quarters that are factors themselves.
#pragma once

#include <cstdint>

#include "gemm/strassen/strassen.hpp"
#include "quads.cuh"

namespace gpunn::cuda_tiled::strassen {

// One number of each quarter of a matrix, or four; the first digit is the row of the quarter.
template <class Value>
struct Quarters {
  Value of11, of12, of21, of22;
};

template <class Value>
struct Sums {
  Value sum[4];
};

// S1...S4 of quarters of a, T1...T4 of quarters of b.
template <bool kOfA, class Value>
__device__ __forceinline__ Sums<Value> sums_of(const Quarters<Value>& q) {
  if constexpr (kOfA) {
    const Value s1 = q.of21 + q.of22;
    const Value s2 = s1 - q.of11;
    return {{s1, s2, q.of11 - q.of21, q.of12 - s2}};
  } else {
    const Value t1 = q.of12 - q.of11;
    const Value t2 = q.of22 - t1;
    return {{t1, t2, q.of22 - q.of12, q.of21 - t2}};
  }
}

// Of an MN-major matrix [2 k][2 outer], whose rows lie row_floats apart. A thread takes four neighbours of each
// quarter. grid: (quads of a quarter's row, rows of a quarter)
template <bool kOfA>
__global__ void __launch_bounds__(kThreads)
    add_quarters(const float* matrix, float* sums, int k, int outer, int row_floats) {
  const int column = 4 * (static_cast<int>(blockIdx.x * blockDim.x) + static_cast<int>(threadIdx.x));
  if (column >= outer) return;
  const auto quad = [&](int half_k, int half_outer) {
    const int64_t row = int64_t{half_k} * k + blockIdx.y;
    return *reinterpret_cast<const float4*>(matrix + row * row_floats + int64_t{half_outer} * outer + column);
  };
  const float4 of12 = kOfA ? quad(1, 0) : quad(0, 1);  // the rows of a are its outer dimension
  const float4 of21 = kOfA ? quad(0, 1) : quad(1, 0);
  const Sums<float4> found = sums_of<kOfA, float4>({quad(0, 0), of12, of21, quad(1, 1)});
  float* const to = sums + int64_t{blockIdx.y} * outer + column;
#pragma unroll
  for (int i = 0; i < 4; ++i) *reinterpret_cast<float4*>(to + int64_t{i} * k * outer) = found.sum[i];
}

// Of a matrix [2 outer][2 k]: the four sums and, after them, the three quarters that are factors, all transposed. A
// block takes 32 x 32 of each quarter. grid: (tiles along k, tiles along outer)
constexpr int kTile = 32;

template <bool kOfA>
__global__ void __launch_bounds__(kThreads) transpose_quarters(const float* matrix, float* factors, int k, int outer) {
  __shared__ float tiles[7][kTile][kTile + 1];
  const int first_k = static_cast<int>(blockIdx.x) * kTile;
  const int first_outer = static_cast<int>(blockIdx.y) * kTile;
  const int line = static_cast<int>(threadIdx.x) / (kTile / 4);
  const int place = static_cast<int>(threadIdx.x) % (kTile / 4) * 4;
  if (first_outer + line < outer && first_k + place < k) {
    const auto quad = [&](int half_k, int half_outer) {
      const int64_t row = int64_t{half_outer} * outer + first_outer + line;
      return *reinterpret_cast<const float4*>(matrix + row * 2 * k + int64_t{half_k} * k + first_k + place);
    };
    const float4 of11 = quad(0, 0);
    const float4 of12 = kOfA ? quad(1, 0) : quad(0, 1);
    const float4 of21 = kOfA ? quad(0, 1) : quad(1, 0);
    const float4 of22 = quad(1, 1);
    const Sums<float4> found = sums_of<kOfA, float4>({of11, of12, of21, of22});
    const float4 quads[7] = {found.sum[0], found.sum[1], found.sum[2], found.sum[3], of11, kOfA ? of12 : of21, of22};
#pragma unroll
    for (int i = 0; i < 7; ++i) {
      tiles[i][place][line] = quads[i].x;
      tiles[i][place + 1][line] = quads[i].y;
      tiles[i][place + 2][line] = quads[i].z;
      tiles[i][place + 3][line] = quads[i].w;
    }
  }
  __syncthreads();
  if (first_k + line >= k || first_outer + place >= outer) return;
  float* const to = factors + int64_t{first_k + line} * outer + first_outer + place;
#pragma unroll
  for (int i = 0; i < 7; ++i) {
    const float* const from = &tiles[i][line][place];
    *reinterpret_cast<float4*>(to + int64_t{i} * k * outer) = make_float4(from[0], from[1], from[2], from[3]);
  }
}

}  // namespace gpunn::cuda_tiled::strassen
