// The seven products of Strassen's algorithm in Winograd's variant, and their sums that form C, in one kernel.
//
// A thread block computes the same tile of all four quarters of C. It makes the products one after the other, and keeps
// its sums if the next product is only added to them. So of Winograd's seven additions of quarters three cost a load
// each, and none needs a launch or its own memory. Intermediate sums wait in the quarter of C that they will be part
// of, written and read by the same thread.
//
//   sums         stored
//   M1           11
//   + S2 T2      12        M1 + M6 = U2
//   + S3 T3      22        U2 + M7 = U3
//   + A22 T4     21, done  U3 - M4
//   M2           11, done  with the stored M1
//   M5           22, done  with the stored U3
//   + 12, + M3   12, done  U2 + M5 + M3
#pragma once

#include <cstdint>

#include "cuda_common/divide_up.hpp"
#include "gemm/fp32/matrix_loader.cuh"
#include "gemm/fp32/register_tile.cuh"
#include "gemm/fp32/tile_gemm.cuh"
#include "gemm/gemm_arguments.cuh"
#include "gemm/strassen/strassen.hpp"
#include "quads.cuh"

namespace gpunn::cuda_tiled::strassen {

// Bits of the products, by their place in the order.
constexpr unsigned kCleared = 0b0110001;  // begins with zeros
constexpr unsigned kAdded = 0b0110000;    // what the quarter holds is added
constexpr unsigned kDone = 0b1111000;     // the quarter is finished
constexpr unsigned kGoesOn = 0b0100000;   // afterwards quarter 12 is added to the sums
constexpr unsigned kRight = 0b1100110;    // the quarter is 12 or 22
constexpr unsigned kLower = 0b0101100;    // the quarter is 21 or 22

__device__ __forceinline__ bool has(unsigned bits, int product) { return (bits >> product & 1U) != 0; }

// The destination of a quarter's sums.
struct Target {
  float* to;
  int64_t row_of_to;
  const float* kept;  // added; null: nothing is
  int64_t row_of_kept;
  const float* before;  // added, with the rows of `to`; null: nothing is
  Epilogue epilogue;
};

// A thread's sums while they are stored, in shared memory: in registers they would leave too few to store them by, and
// how the compiler then fits them in costs the products a third of their speed. No other thread reads them.
template <class Shape>
struct Parking {
  static constexpr int kSums = Shape::kThreadM * Shape::kThreadN;
  static constexpr int kBytes = 4 * kSums * Shape::kThreads;

  float* sums;  // of this thread; the next of them is a block's threads further

  __device__ __forceinline__ void park(const float (&from)[Shape::kThreadM][Shape::kThreadN]) const {
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i * Shape::kThreads] = from[i / Shape::kThreadN][i % Shape::kThreadN];
  }
  __device__ __forceinline__ void fetch(float (&to)[Shape::kThreadM][Shape::kThreadN]) const {
#pragma unroll
    for (int i = 0; i < kSums; ++i) to[i / Shape::kThreadN][i % Shape::kThreadN] = sums[i * Shape::kThreads];
  }
  __device__ __forceinline__ float4 quad(int i, int j) const {
    const float* const from = sums + (i * Shape::kThreadN + j) * Shape::kThreads;
    return make_float4(from[0], from[Shape::kThreads], from[2 * Shape::kThreads], from[3 * Shape::kThreads]);
  }
  __device__ __forceinline__ void add(int i, int j, const float4& quad) const {
    float* const to = sums + (i * Shape::kThreadN + j) * Shape::kThreads;
    to[0] += quad.x;
    to[Shape::kThreads] += quad.y;
    to[2 * Shape::kThreads] += quad.z;
    to[3 * Shape::kThreads] += quad.w;
  }
};

template <class Shape>
__device__ __forceinline__ void store_quarter(const Arguments& g, const ThreadPlace<Shape>& place, int first_row,
                                              int first_column, const Target& target, const Parking<Shape>& parking) {
  constexpr int kAtOnce = 8;  // loads
#pragma unroll 1
  for (int j = 0; j < Shape::kThreadN; j += 4) {
    const int column = first_column + place.column(j);
    if (column >= g.half_n) continue;
    float4 bias = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    if (target.epilogue.bias != nullptr) {
      const float* const from = target.epilogue.bias + column;
      bias = make_float4(from[0], from[1], from[2], from[3]);
    }
#pragma unroll 1
    for (int first = 0; first < Shape::kThreadM; first += kAtOnce) {
      float4 all[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) all[i] = parking.quad(first + i, j);
      const auto add = [&](const float* from, int64_t row_floats) {
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int row = first_row + place.row(first + i);
          if (row < g.half_m) {
            all[i] = all[i] + *reinterpret_cast<const float4*>(from + row * row_floats + column);
          }
        }
      };
      if (target.kept != nullptr) add(target.kept, target.row_of_kept);
      if (target.before != nullptr) add(target.before, target.row_of_to);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int row = first_row + place.row(first + i);
        const float sum[4] = {all[i].x, all[i].y, all[i].z, all[i].w};
        if (row < g.half_m) {
          *reinterpret_cast<float4*>(target.to + row * target.row_of_to + column) =
              finish_quad({nullptr, target.epilogue.relu}, sum, bias);
        }
      }
    }
  }
}

// Stores the sums of a product in their quarters.
template <class Shape>
__device__ __forceinline__ void store_product(const Arguments& g, const ThreadPlace<Shape>& place, int product, int row,
                                              int column, const Parking<Shape>& parking) {
  const int right = has(kRight, product) ? g.half_n : 0;
  const int lower = has(kLower, product) ? g.half_m : 0;
  float* const kept = g.kept + lower * g.row_of_kept + right;
  if (!has(kDone, product)) {
    return store_quarter<Shape>(g, place, row, column, {kept, g.row_of_kept, nullptr, 0, nullptr, {}}, parking);
  }
  const int64_t in_y = lower * g.row_of_y + right;
  const float* const added = has(kAdded, product) ? kept : nullptr;
  if (g.also != nullptr) {
    float* const to = g.also + in_y;
    store_quarter<Shape>(g, place, row, column, {to, g.row_of_y, added, g.row_of_kept, to, {}}, parking);
  }
  const Epilogue epilogue{g.epilogue.bias == nullptr ? nullptr : g.epilogue.bias + right, g.epilogue.relu};
  const float* const before = g.before == nullptr ? nullptr : g.before + in_y;
  store_quarter<Shape>(g, place, row, column, {g.y + in_y, g.row_of_y, added, g.row_of_kept, before, epilogue},
                       parking);
}

template <class Shape>
__device__ __forceinline__ void add_quarter(const Arguments& g, const ThreadPlace<Shape>& place, int first_row,
                                            int first_column, const Parking<Shape>& parking) {
#pragma unroll 1
  for (int j = 0; j < Shape::kThreadN; j += 4) {
    const int column = first_column + place.column(j);
    float4 kept[Shape::kThreadM];
#pragma unroll
    for (int i = 0; i < Shape::kThreadM; ++i) {
      const int row = first_row + place.row(i);
      kept[i] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
      if (column >= g.half_n || row >= g.half_m) continue;
      kept[i] = *reinterpret_cast<const float4*>(g.kept + row * g.row_of_kept + g.half_n + column);
    }
#pragma unroll
    for (int i = 0; i < Shape::kThreadM; ++i) parking.add(i, j, kept[i]);
  }
}

// grid: tiles of a quarter of C
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kMinBlocks)
    multiply_factors(const __grid_constant__ Arguments g) {
  static_assert(Shape::kSlices == 1 && Shape::kThreadM % 8 == 0);
  extern __shared__ __align__(16) float shared[];
  const TilePlace tile = tile_of_block<Shape>(g.half_m, g.half_n);
  const int row = tile.row * Shape::kBlockM;
  const int column = tile.column * Shape::kBlockN;
  const int tiles = cuda::divide_up(g.half_k, Shape::kBlockK);
  const int thread = static_cast<int>(threadIdx.x);
  using LoadA = StraightLoader<kLoadedA<Shape>, 16>;
  using LoadB = StraightLoader<kLoadedB<Shape>, 16>;
  const auto loader_of_a = [&](int product) {
    return LoadA(g.a[product].data, g.half_m, g.a[product].row_floats, row, 0, g.half_k, thread);
  };
  const auto loader_of_b = [&](int product) {
    return LoadB(g.b[product].data, g.half_n, g.b[product].row_floats, column, 0, g.half_k, thread);
  };
  const ThreadPlace<Shape> place(thread);
  const Parking<Shape> parking{shared + Shape::kSharedBytes / 4 + thread};
  float sums[Shape::kThreadM][Shape::kThreadN];
  clear_sums<Shape>(sums);
  LoadA load_a = loader_of_a(0);
  LoadB load_b = loader_of_b(0);
  start_tiles<Shape>(shared, tiles, load_a, load_b);
#pragma unroll 1
  for (int product = 0; product < kProducts; ++product) {
    multiply_tiles<Shape>(place, shared, tiles, load_a, load_b, sums);
    parking.park(sums);
    const int next = product + 1;
    if (next < kProducts) {  // whose first tiles come while the sums are stored
      __syncthreads();
      load_a = loader_of_a(next);
      load_b = loader_of_b(next);
      start_tiles<Shape>(shared, tiles, load_a, load_b);
    }
    store_product<Shape>(g, place, product, row, column, parking);
    if (has(kGoesOn, product)) add_quarter<Shape>(g, place, row, column, parking);
    parking.fetch(sums);
    if (has(kCleared, next)) clear_sums<Shape>(sums);
  }
}

template <class Shape>
constexpr unsigned shared_bytes() {
  return Shape::kSharedBytes + Parking<Shape>::kBytes;
}

}  // namespace gpunn::cuda_tiled::strassen
