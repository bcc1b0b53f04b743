// conv:3, Winograd F(2x2, 3x3) (Lavin and Gray, 2016), for the forward pass and the data gradient. An output tile of
// 2x2 from an input patch of 4x4 takes 16 products for each pair of channels instead of 36.
//
// The kernel is fused: the transformed images, four times as large as the images, are never in memory. A thread block
// computes 64 channels of 32 tiles. For each 8 input channels a thread loads one patch of one channel while the
// previous 8 are multiplied. It transforms the patch in registers and writes its 16 points to shared memory. A small
// kernel transforms the filters once a call, in the order in which blocks read them, and asynchronous copies bring them
// in. The sums stay in registers until the inverse transform, whose epilogue adds the bias and applies ReLU.
//
// H200, 3x3, batch 128, 64 channels at 32x32 to 512 at 4x4: 56 to 65 TFLOP/s of the direct convolution, 1.9 times
// conv:2 (geometric means, with the weight gradient: 57). 70 % of the multiprocessors' issue slots are used, two thirds
// of them for multiplications: a scheduler has only two warps to choose from.
#include <algorithm>

#include <cuda_pipeline_primitives.h>

#include "conv/winograd/f2x2_multiply.cuh"
#include "conv/winograd/winograd.hpp"
#include "conv/winograd/winograd_filters.cuh"
#include "cuda_common/launch.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled::winograd {
namespace {

using cuda::check;
using cuda::launch;

constexpr int kFilterStep = kPoints * kRows;    // transformed filters of one input channel and 64 outputs
constexpr int kImageStep = kPoints * kColumns;  // transformed images of one channel and 32 tiles
constexpr int kStage = kDepth * (kFilterStep + kImageStep);
constexpr int kShared = std::max(2 * kStage, kExchange);

struct Plan {
  Convolution shape;
  int tile_rows;
  int tile_columns;
  int tiles;
  int filter_blocks;
  int steps;

  explicit Plan(const Convolution& c)
      : shape(c),
        tile_rows(cuda::divide_up(c.result_rows, 2)),
        tile_columns(cuda::divide_up(c.result_columns, 2)),
        tiles(c.batch * tile_rows * tile_columns),
        filter_blocks(cuda::divide_up(c.outputs, kRows)),
        steps(cuda::divide_up(c.inputs, kDepth)) {}
};

// G g G^T.
struct FilterTransform {
  static constexpr int kPoints = winograd::kPoints;

  __device__ static void apply(const float (&g)[9], float (&u)[kPoints]) {
    float half[4][3];
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      const float outer = 0.5F * (g[j] + g[6 + j]);
      const float middle = 0.5F * g[3 + j];
      half[0][j] = g[j];
      half[1][j] = outer + middle;
      half[2][j] = outer - middle;
      half[3][j] = g[6 + j];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float outer = 0.5F * (half[i][0] + half[i][2]);
      const float middle = 0.5F * half[i][1];
      u[4 * i] = half[i][0];
      u[4 * i + 1] = outer + middle;
      u[4 * i + 2] = outer - middle;
      u[4 * i + 3] = half[i][2];
    }
  }
};

// [group][filter block][input][point][64], zero where there is no channel.
struct FilterLayout {
  int filter_blocks;
  int steps;
  int point_stride = kRows;

  __device__ static bool holds(int, int) { return true; }
  __device__ int64_t at(int group, int output, int input) const {
    const int64_t block = group * filter_blocks + output / kRows;
    return (block * steps * kDepth + input) * kFilterStep + output % kRows;
  }
};

template <bool turned>
__global__ __launch_bounds__(kFilterThreads) void transform_filters(const float* w, float* u, Convolution shape,
                                                                    FilterLayout layout) {
  transform_filter_block<FilterTransform, FilterLayout, turned>(w, u, shape, layout, blockIdx);
}

// The 4x4 patch of a tile, in one channel after the other.
class Patch {
 public:
  __device__ Patch(const float* x, const Plan& plan, int group, int tile) : x_(x), columns_(plan.shape.columns) {
    const Convolution& shape = plan.shape;
    const int image = tile / (plan.tile_rows * plan.tile_columns);
    const int row = tile / plan.tile_columns % plan.tile_rows * 2 - shape.pad_rows;
    const int column = tile % plan.tile_columns * 2 - shape.pad_columns;
    offset_ = (image * shape.groups + group) * shape.inputs * shape.rows * shape.columns + row * shape.columns + column;
#pragma unroll
    for (int i = 0; i < kPoints; ++i) {
      const bool inside = row + i / 4 >= 0 && row + i / 4 < shape.rows && column + i % 4 >= 0 &&
                          column + i % 4 < shape.columns && tile < plan.tiles;
      inside_ |= static_cast<unsigned>(inside) << i;
    }
  }

  __device__ void load(int channel, const Plan& plan, float (&patch)[kPoints]) const {
    const unsigned inside = channel < plan.shape.inputs ? inside_ : 0;
    const int from = offset_ + channel * plan.shape.rows * columns_;
#pragma unroll
    for (int i = 0; i < kPoints; ++i) {
      patch[i] = (inside >> i & 1U) != 0 ? __ldg(x_ + from + i / 4 * columns_ + i % 4) : 0.0F;
    }
  }

 private:
  const float* x_;
  int columns_;
  int offset_;
  unsigned inside_ = 0;
};

// A^T m A of the element in all its points, and the end of the convolution.
__device__ __forceinline__ void store_tile(const float (&m)[kPoints], const Plan& plan, const Epilogue& epilogue,
                                           float* y, int group, int filter, int tile) {
  const Convolution& shape = plan.shape;
  if (filter >= shape.outputs || tile >= plan.tiles) return;
  const int channel = group * shape.outputs + filter;
  const int image = tile / (plan.tile_rows * plan.tile_columns);
  const int row = tile / plan.tile_columns % plan.tile_rows * 2;
  const int column = tile % plan.tile_columns * 2;
  const float bias = epilogue.bias != nullptr ? epilogue.bias[channel] : 0.0F;
  float* to =
      y +
      static_cast<int64_t>(image * shape.groups * shape.outputs + channel) * shape.result_rows * shape.result_columns +
      row * shape.result_columns + column;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (row + i >= shape.result_rows) return;
    float sum[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) sum[j] = i == 0 ? m[j] + m[4 + j] + m[8 + j] : m[4 + j] - m[8 + j] - m[12 + j];
    const float left = finish(epilogue, sum[0] + sum[1] + sum[2], bias);
    const float right = finish(epilogue, sum[1] - sum[2] - sum[3], bias);
    if (shape.result_columns % 2 == 0) {
      *reinterpret_cast<float2*>(to + i * shape.result_columns) = make_float2(left, right);
    } else {
      to[i * shape.result_columns] = left;
      if (column + 1 < shape.result_columns) to[i * shape.result_columns + 1] = right;
    }
  }
}

__global__ __launch_bounds__(kThreads, 1) void convolve_tiles(const float* x, const float* u, Epilogue epilogue,
                                                              float* y, Plan plan) {
  extern __shared__ __align__(16) float shared[];
  const int filter_block = static_cast<int>(blockIdx.x) % plan.filter_blocks;
  const int first_tile = static_cast<int>(blockIdx.x) / plan.filter_blocks * kColumns;
  const int group = static_cast<int>(blockIdx.y);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Place place;
  const Patch source(x, plan, group, first_tile + lane);
  const float* filters =
      u + static_cast<int64_t>(group * plan.filter_blocks + filter_block) * plan.steps * kDepth * kFilterStep;

  const auto copy_filters = [&](int step) {
    float* to = shared + step % 2 * kStage;
    const float* from = filters + static_cast<int64_t>(step) * kDepth * kFilterStep;
#pragma unroll
    for (int i = 0; i < kDepth * kFilterStep / 4 / kThreads; ++i) {
      const int at = (i * kThreads + static_cast<int>(threadIdx.x)) * 4;
      __pipeline_memcpy_async(to + at, from + at, 16);
    }
    __pipeline_commit();
  };
  float patch[kPoints];
  const auto store_patch = [&](int step) {
    float* to = shared + step % 2 * kStage + kDepth * kFilterStep + warp * kImageStep + lane;
    transform_patch(patch);
#pragma unroll
    for (int p = 0; p < kPoints; ++p) to[p * kColumns] = patch[p];
  };

  Sums sums = {};
  copy_filters(0);
  source.load(warp, plan, patch);
  store_patch(0);
  __pipeline_wait_prior(0);
  __syncthreads();
  for (int step = 0; step < plan.steps; ++step) {
    const bool more = step + 1 < plan.steps;
    if (more) {
      copy_filters(step + 1);
      source.load((step + 1) * kDepth + warp, plan, patch);
    }
    const float* stage = shared + step % 2 * kStage;
    multiply<kFilterStep, kImageStep>(stage, stage + kDepth * kFilterStep, place, sums);
    if (more) {
      store_patch(step + 1);
      __pipeline_wait_prior(0);
    }
    __syncthreads();
  }

  const auto finish_rows = [&](int first_row) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float m[kPoints];
      load_exchange(shared, warp + 8 * i, lane, m);
      store_tile(m, plan, epilogue, y, group, filter_block * kRows + first_row + warp + 8 * i, first_tile + lane);
    }
  };
  store_exchange<0>(shared, place, sums);
  finish_rows(0);
  __syncthreads();
  store_exchange<32>(shared, place, sums);
  finish_rows(32);
}

}  // namespace

uint64_t f2x2_fprop_workspace_bytes(const Convolution& convolution) {
  const Plan plan(convolution);
  return uint64_t{sizeof(float)} * static_cast<uint64_t>(convolution.groups) *
         static_cast<uint64_t>(plan.filter_blocks) * static_cast<uint64_t>(plan.steps) * kDepth * kFilterStep;
}

void f2x2_fprop(const Convolution& convolution, const float* x, const float* w, const Epilogue& epilogue, float* y,
                float* workspace, cudaStream_t stream) {
  const Plan plan(convolution);
  const dim3 grid(static_cast<unsigned>(plan.filter_blocks * (kRows / kFilterLanes)), static_cast<unsigned>(plan.steps),
                  static_cast<unsigned>(convolution.groups));
  const FilterLayout layout{plan.filter_blocks, plan.steps};
  launch(convolution.turned ? transform_filters<true> : transform_filters<false>, {grid, dim3(kFilterThreads)}, stream,
         w, workspace, convolution, layout);
  constexpr unsigned kBytes = kShared * sizeof(float);
  allow_shared_memory(convolve_tiles, kBytes);
  launch(convolve_tiles,
         {dim3(static_cast<unsigned>(plan.filter_blocks * cuda::divide_up(plan.tiles, kColumns)),
               static_cast<unsigned>(convolution.groups)),
          dim3(kThreads), kBytes},
         stream, x, workspace, epilogue, y, plan);
}

}  // namespace gpunn::cuda_tiled::winograd
