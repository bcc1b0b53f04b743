// Rows of up to 1024 numbers that some lanes of a warp keep in registers. Shuffles compute the maximum and the sum of a
// row, without shared memory and without waiting for other warps.
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda_common/launch.hpp"
#include "warp.hpp"

namespace gpunn::cuda_tiled {

template <int lanes, class Combine>
__device__ __forceinline__ float among(float mine, const Combine& combine) {
#pragma unroll
  for (int reach = lanes / 2; reach > 0; reach /= 2) {
    mine = combine(mine, __shfl_xor_sync(kEveryLane, mine, reach, lanes));
  }
  return mine;
}

template <int lanes>
__device__ __forceinline__ float sum_among(float mine) {
  return among<lanes>(mine, [](float a, float b) { return a + b; });
}

// A row as `lanes` lanes of a warp have it, `count` elements each: element i of a lane is of column lane + i * lanes.
template <int lanes_, int count_>
struct WarpRow {
  static constexpr int lanes = lanes_, count = count_;
  int64_t row;
  int lane;
  int columns;
  bool there;  // false: the row is beyond the last; its lanes go along for the shuffles

  __device__ WarpRow(int64_t rows, int64_t of_row)
      : row((int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / lanes),
        lane(static_cast<int>(threadIdx.x) % lanes),
        columns(static_cast<int>(of_row)),
        there(row < rows) {}

  __device__ __forceinline__ bool has(int i) const { return there && lane + i * lanes < columns; }
  __device__ __forceinline__ int64_t at(int i) const { return row * columns + lane + i * lanes; }
  template <class T>
  __device__ __forceinline__ void load(const T* from, float (&to)[count], float otherwise) const {
#pragma unroll
    for (int i = 0; i < count; ++i) to[i] = has(i) ? static_cast<float>(from[at(i)]) : otherwise;
  }
  __device__ __forceinline__ void store(float* to, const float (&from)[count]) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (has(i)) to[at(i)] = from[i];
    }
  }
};

// What a row's softmax is made of. Of a row with a NaN or +infinity, or of nothing but -infinity, the sum is NaN.
struct SoftmaxSums {
  float largest;
  float sum;  // of exp(x - largest)
};

template <class R>
__device__ __forceinline__ SoftmaxSums softmax_sums(const R& row, const float (&x)[R::count]) {
  float largest = -INFINITY;
#pragma unroll
  for (int i = 0; i < R::count; ++i) largest = fmaxf(largest, x[i]);
  largest = among<R::lanes>(largest, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0.0F;
#pragma unroll
  for (int i = 0; i < R::count; ++i) sum += row.has(i) ? expf(x[i] - largest) : 0.0F;
  return {largest, sum_among<R::lanes>(sum)};
}

template <class Op, int lanes, int count>
__global__ void __launch_bounds__(cuda::kThreads) by_rows(Op op, int64_t rows, int64_t columns) {
  op(WarpRow<lanes, count>(rows, columns));
}

template <class Op, int lanes, int count>
void launch_rows(const Op& op, int64_t rows, int64_t columns, cudaStream_t stream) {
  cuda::launch(by_rows<Op, lanes, count>, cuda::thread_each(rows * lanes), stream, op, rows, columns);
}

}  // namespace gpunn::cuda_tiled
