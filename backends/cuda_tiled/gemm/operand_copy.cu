// Memory-bound passes in front of the tensor-core kernels. The transpose goes through a tile in shared memory whose
// padding keeps the columns' reads in different banks; the conversion reads 32 bytes and writes 16 a thread.
#include <algorithm>

#include <cuda_bf16.h>

#include "cuda_common/launch.hpp"
#include "dependent_launch.cuh"
#include "operand_copy.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

constexpr int kTile = 32;
constexpr int kRowsAtOnce = 8;
constexpr int64_t kMostGridRows = 65535;

// A block walks down its column of tiles, so that the grid stays within its limits at any height.
__global__ void transpose(const float* from, int64_t rows, int64_t columns, float* to, int64_t pitch) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t column = int64_t{blockIdx.x} * kTile;
  for (int64_t row = int64_t{blockIdx.y} * kTile; row < rows; row += int64_t{gridDim.y} * kTile) {
#pragma unroll
    for (int i = static_cast<int>(threadIdx.y); i < kTile; i += kRowsAtOnce) {
      if (row + i < rows && column + threadIdx.x < columns) {
        tile[i][threadIdx.x] = from[(row + i) * columns + column + threadIdx.x];
      }
    }
    __syncthreads();
#pragma unroll
    for (int i = static_cast<int>(threadIdx.y); i < kTile; i += kRowsAtOnce) {
      if (column + i < columns && row + threadIdx.x < rows) {
        to[(column + i) * pitch + row + threadIdx.x] = tile[threadIdx.x][i];
      }
    }
    __syncthreads();
  }
}

__global__ void repitch(const float* from, int64_t rows, int64_t columns, float* to, int64_t pitch) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = thread_index(); i < rows * columns; i += stride) to[i / columns * pitch + i % columns] = from[i];
}

__device__ __forceinline__ uint32_t bf16_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return uint32_t{__bfloat16_as_ushort(pair.x)} | (uint32_t{__bfloat16_as_ushort(pair.y)} << 16U);
}

__host__ __device__ int64_t chunks_of(const Bf16Copy& copy) { return copy.rows * (copy.pitch / 8); }

// A thread eight numbers of one of the two.
__global__ void to_bf16(Bf16Copy copy, Bf16Copy second) {
  let_next_kernel_start();  // the product
  int64_t i = thread_index();
  if (i >= chunks_of(copy)) {
    i -= chunks_of(copy);
    copy = second;
    if (i >= chunks_of(copy)) return;
  }
  const int64_t columns = copy.columns;
  // Where nothing is padded the matrix is one long line.
  const int64_t row = copy.pitch == columns ? 0 : i / (copy.pitch / 8);
  const int64_t column = (i - row * (copy.pitch / 8)) * 8;
  const int64_t end = copy.pitch == columns ? copy.rows * columns : columns;
  const float* const source = copy.from + row * columns + column;
  float values[8];
  if (columns % 4 == 0 && column + 8 <= end) {
    const float4 first = reinterpret_cast<const float4*>(source)[0],
                 second = reinterpret_cast<const float4*>(source)[1];
    values[0] = first.x, values[1] = first.y, values[2] = first.z, values[3] = first.w;
    values[4] = second.x, values[5] = second.y, values[6] = second.z, values[7] = second.w;
  } else {
#pragma unroll
    for (int j = 0; j < 8; ++j) values[j] = column + j < end ? source[j] : 0.0F;
  }
  const uint4 packed = {bf16_pair(values[0], values[1]), bf16_pair(values[2], values[3]),
                        bf16_pair(values[4], values[5]), bf16_pair(values[6], values[7])};
  *reinterpret_cast<uint4*>(copy.to + row * copy.pitch + column) = packed;
}

}  // namespace

void copy_transposed(const float* from, int64_t rows, int64_t columns, float* to, int64_t pitch, cudaStream_t stream) {
  const auto tiles = [](int64_t n) { return (n + kTile - 1) / kTile; };
  launch(transpose,
         {dim3(static_cast<unsigned>(tiles(columns)), static_cast<unsigned>(std::min(tiles(rows), kMostGridRows))),
          dim3(kTile, kRowsAtOnce)},
         stream, from, rows, columns, to, pitch);
}

void copy_pitched(const float* from, int64_t rows, int64_t columns, float* to, int64_t pitch, cudaStream_t stream) {
  constexpr int64_t kEach = 4;
  launch(repitch, thread_each((rows * columns + kEach - 1) / kEach), stream, from, rows, columns, to, pitch);
}

void copy_bf16(const Bf16Copy& first, const Bf16Copy& second, cudaStream_t stream) {
  launch(to_bf16, thread_each(chunks_of(first) + chunks_of(second)), stream, first, second);
}

}  // namespace gpunn::cuda_tiled
