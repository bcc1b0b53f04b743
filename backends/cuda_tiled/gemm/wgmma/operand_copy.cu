// Memory-bound passes that prepare operands for the tensor-core kernels. Each kernel starts as soon as the one before
// allows it. The transpose uses a tile in shared memory, padded so that the reads of a column lie in different banks.
#include <algorithm>

#include <cuda_bf16.h>

#include "cuda_common/launch.hpp"
#include "dependent_launch.cuh"
#include "gemm/wgmma/operand_copy.hpp"
#include "launch.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

constexpr int kTile = 32;
constexpr int kTileThreads = kTile * kTile / 4;
constexpr int64_t kMostGridRows = 65535;

// Four neighbours of a row, zeros outside.
__device__ __forceinline__ float4 quad_of(const TransposedCopy& copy, int64_t row, int64_t column) {
  float4 quad = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  if (row >= copy.rows || column >= copy.columns) return quad;
  const float* const from = copy.from + row * copy.columns + column;
  if (copy.columns % 4 == 0) return *reinterpret_cast<const float4*>(from);
  quad.x = from[0];
  if (column + 1 < copy.columns) quad.y = from[1];
  if (column + 2 < copy.columns) quad.z = from[2];
  if (column + 3 < copy.columns) quad.w = from[3];
  return quad;
}

// A block walks down its column of tiles, so that the grid stays within its limits at any height.
__global__ __launch_bounds__(kTileThreads) void transpose(TransposedCopy copy, TransposedCopy second) {
  __shared__ float tile[kTile][kTile + 1];
  let_next_kernel_start();
  wait_for_kernel_before();
  if (blockIdx.z == 1) copy = second;
  const int line = static_cast<int>(threadIdx.x) / (kTile / 4), place = static_cast<int>(threadIdx.x) % (kTile / 4) * 4;
  const int64_t column = int64_t{blockIdx.x} * kTile;
  if (column >= copy.columns) return;
  for (int64_t row = int64_t{blockIdx.y} * kTile; row < copy.rows; row += int64_t{gridDim.y} * kTile) {
    const float4 quad = quad_of(copy, row + line, column + place);
    tile[line][place] = quad.x;
    tile[line][place + 1] = quad.y;
    tile[line][place + 2] = quad.z;
    tile[line][place + 3] = quad.w;
    __syncthreads();
    if (column + line < copy.columns && row + place < copy.rows) {
      const float4 turned =
          make_float4(tile[place][line], tile[place + 1][line], tile[place + 2][line], tile[place + 3][line]);
      reinterpret_cast<float4*>(copy.to + (column + line) * copy.pitch)[(row + place) / 4] = turned;
    }
    __syncthreads();
  }
}

__global__ void repitch(const float* from, int64_t rows, int64_t columns, float* to, int64_t pitch) {
  let_next_kernel_start();
  wait_for_kernel_before();
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
  wait_for_kernel_before();
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

// Two matrices without padding: one long line each, of which a block takes kEach times as many quads as it has threads.
constexpr unsigned kLineThreads = 256;
constexpr int kEach = 2;
constexpr int64_t kBlockQuads = int64_t{kLineThreads} * kEach;

__host__ __device__ int64_t blocks_of(const Bf16Copy& copy) {
  return (copy.rows * copy.columns / 4 + kBlockQuads - 1) / kBlockQuads;
}

__global__ __launch_bounds__(kLineThreads) void lines_to_bf16(Bf16Copy copy, Bf16Copy second) {
  let_next_kernel_start();
  wait_for_kernel_before();
  int64_t block = blockIdx.x;
  if (block >= blocks_of(copy)) {
    block -= blocks_of(copy);
    copy = second;
  }
  const int64_t first = block * kBlockQuads + threadIdx.x, end = copy.rows * copy.columns / 4;
  float4 quads[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int64_t at = first + i * int64_t{kLineThreads};
    if (at < end) quads[i] = reinterpret_cast<const float4*>(copy.from)[at];
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int64_t at = first + i * int64_t{kLineThreads};
    if (at >= end) return;
    reinterpret_cast<uint2*>(copy.to)[at] =
        make_uint2(bf16_pair(quads[i].x, quads[i].y), bf16_pair(quads[i].z, quads[i].w));
  }
}

}  // namespace

void copy_transposed(const TransposedCopy& first, const TransposedCopy& second, cudaStream_t stream) {
  const int64_t rows = std::min(std::max(first.rows, second.rows), kMostGridRows * kTile);
  launch_with(transpose,
              {dim3(cuda::grid_size(std::max(first.columns, second.columns), kTile), cuda::grid_size(rows, kTile),
                    second.rows > 0 ? 2 : 1),
               dim3(kTileThreads)},
              {.early = true}, stream, first, second);
}

void copy_pitched(const float* from, int64_t rows, int64_t columns, float* to, int64_t pitch, cudaStream_t stream) {
  constexpr int64_t kQuad = 4;
  launch_with(repitch, thread_each(cuda::divide_up(rows * columns, kQuad)), {.early = true}, stream, from, rows,
              columns, to, pitch);
}

void copy_bf16(const Bf16Copy& first, const Bf16Copy& second, cudaStream_t stream) {
  if (first.pitch == first.columns && second.pitch == second.columns) {
    const auto blocks = static_cast<unsigned>(blocks_of(first) + blocks_of(second));
    return launch_with(lines_to_bf16, {dim3(blocks), dim3(kLineThreads)}, {.early = true}, stream, first, second);
  }
  launch_with(to_bf16, thread_each(chunks_of(first) + chunks_of(second)), {.early = true}, stream, first, second);
}

}  // namespace gpunn::cuda_tiled
