// Moves sums from registers to global memory through shared memory, one float of a thread at a time.
//
// A thread that stores four floats at once needs them in four consecutive registers. If the compiler arranges this
// before the loop, many products wait for a bank of the register file. Stored one by one, next to those of the
// neighbouring threads, the sums stay in the registers that suit the loop. The threads then read them back four at a
// time, and add the sums of the slices on the way.
#pragma once

#include "gemm/fp32/register_tile.cuh"

namespace gpunn::cuda_tiled {

template <class Shape>
constexpr int kThreadsOfSlice = Shape::kWarps * 32;

template <class Shape>
constexpr int kQuadsOfThread = Shape::kThreadM* Shape::kThreadN / 4;

// The position of four of a thread's sums in the block's tile.
template <class Shape>
__device__ __forceinline__ int row_of_quad(const ThreadPlace<Shape>& place, int quad) {
  return place.row(quad / (Shape::kThreadN / 4));
}
template <class Shape>
__device__ __forceinline__ int column_of_quad(const ThreadPlace<Shape>& place, int quad) {
  return place.column(quad % (Shape::kThreadN / 4) * 4);
}

// As [slice][sum][thread].
template <class Shape>
__device__ __forceinline__ void put_sums(const ThreadPlace<Shape>& place, float* shared,
                                         const float (&sums)[Shape::kThreadM][Shape::kThreadN]) {
  constexpr int kStride = kThreadsOfSlice<Shape>;
  float* const to = shared + place.slice * Shape::kBlockM * Shape::kBlockN + threadIdx.x % kStride;
#pragma unroll
  for (int i = 0; i < Shape::kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < Shape::kThreadN; ++j) to[(i * Shape::kThreadN + j) * kStride] = sums[i][j];
  }
}

// A quad of those, of thread `thread` of a slice, added over the slices in their order.
template <class Shape>
__device__ __forceinline__ float4 quad_of_slices(const float* shared, int quad, int thread) {
  constexpr int kStride = kThreadsOfSlice<Shape>;
  const float* const from = shared + quad * 4 * kStride + thread;
  float sum[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) sum[i] = from[i * kStride];
#pragma unroll
  for (int slice = 1; slice < Shape::kSlices; ++slice) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[i] += from[slice * Shape::kBlockM * Shape::kBlockN + i * kStride];
  }
  return make_float4(sum[0], sum[1], sum[2], sum[3]);
}

// Calls take(quad, sum) for each quad of this thread's place, added over the slices: by one of the threads, of each
// slice one, that have the place. shared: Slices x BlockM x BlockN floats.
template <class Shape, class Take>
__device__ __forceinline__ void take_sums(const ThreadPlace<Shape>& place, float* shared,
                                          const float (&sums)[Shape::kThreadM][Shape::kThreadN], const Take& take) {
  constexpr int kQuadsOfSlice = kQuadsOfThread<Shape> / Shape::kSlices;
  static_assert(kQuadsOfSlice * Shape::kSlices == kQuadsOfThread<Shape>);
  __syncthreads();  // no thread reads a tile any more
  put_sums<Shape>(place, shared, sums);
  __syncthreads();
#pragma unroll(kQuadsOfSlice < 4 ? kQuadsOfSlice : 4)
  for (int i = 0; i < kQuadsOfSlice; ++i) {
    const int quad = i * Shape::kSlices + place.slice;
    take(quad, quad_of_slices<Shape>(shared, quad, static_cast<int>(threadIdx.x) % kThreadsOfSlice<Shape>));
  }
}

}  // namespace gpunn::cuda_tiled
