// conv:3, Winograd F(3x3, 2x2) (Lavin and Gray, 2016), for the weight gradient. The 3x3 gradient is the correlation of
// a 4x4 patch of x with a 2x2 tile of dy, summed over all tiles. Both are transformed to 16 points. The sum over tiles
// is 16 matrix products, and their result is transformed back.
//
// The kernel is fused as the forward pass is: a thread block computes 64 channels of dy x 32 of x. For each 8 tiles a
// thread loads and transforms one patch of x and two tiles of dy while the previous 8 tiles are multiplied. The tiles
// of the batch are split in shares, so that there are blocks for the whole GPU. Each share's gradient is stored, and a
// second kernel adds them in order.
//
// H200, 3x3, batch 128, 64 channels at 32x32 to 512 at 4x4: 49 to 52 TFLOP/s of the direct sum, 1.5 to 2 times conv:2.
#include <algorithm>

#include "conv/winograd/f2x2_multiply.cuh"
#include "conv/winograd/winograd.hpp"
#include "cuda_common/launch.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled::winograd {
namespace {

using cuda::check;
using cuda::launch;
using cuda::thread_each;

// The lanes of a warp store 8 tiles x 4 channels: 4 numbers between the tiles spread them over all banks.
constexpr int kGradientStep = kPoints * kRows + 4;
constexpr int kImageStep = kPoints * kColumns + 4;
constexpr int kStage = kDepth * (kGradientStep + kImageStep);
constexpr int kShared = std::max(2 * kStage, kExchange);
constexpr int kTaps = 9;

struct Plan {
  Convolution shape;
  int tile_rows;
  int tile_columns;
  int tiles;
  int row_blocks;
  int column_blocks;
  int shares;
  int tiles_of_share;  // a multiple of kDepth

  Plan(const Convolution& c, int multiprocessors)
      : shape(c),
        tile_rows(cuda::divide_up(c.result_rows, 2)),
        tile_columns(cuda::divide_up(c.result_columns, 2)),
        tiles(c.batch * tile_rows * tile_columns),
        row_blocks(cuda::divide_up(c.outputs, kRows)),
        column_blocks(cuda::divide_up(c.inputs, kColumns)) {
    const int steps = cuda::divide_up(tiles, kDepth);
    const int blocks = row_blocks * column_blocks * c.groups;
    // The time of a number of shares: waves of blocks, each of some steps and of a beginning and end worth a few more.
    constexpr int kOverhead = 3;
    constexpr int kMostShares = 256;
    int64_t best = INT64_MAX;
    int best_shares = 1;
    for (int n = 1; n <= std::min(steps, kMostShares); ++n) {
      const int64_t waves = cuda::divide_up(int64_t{blocks} * n, multiprocessors);
      const int64_t time = waves * (cuda::divide_up(steps, n) + kOverhead);
      if (time < best) {
        best = time;
        best_shares = n;
      }
      if (waves > 8) break;
    }
    tiles_of_share = cuda::divide_up(steps, best_shares) * kDepth;
    shares = cuda::divide_up(tiles, tiles_of_share);
  }

  __host__ __device__ int64_t weights() const { return int64_t{shape.groups} * shape.outputs * shape.inputs * kTaps; }
};

// A tile of the batch, and the steps from one of a thread's tiles to the next, kDepth behind it.
struct Tile {
  int image;
  int row;
  int column;

  __device__ Tile(int index, const Plan& plan)
      : image(index / (plan.tile_rows * plan.tile_columns)),
        row(index / plan.tile_columns % plan.tile_rows),
        column(index % plan.tile_columns) {}

  // Digit by digit, with carry: a division takes longer.
  __device__ void advance(const Tile& step, const Plan& plan) {
    column += step.column;
    row += step.row;
    image += step.image;
    if (column >= plan.tile_columns) {
      column -= plan.tile_columns;
      ++row;
    }
    if (row >= plan.tile_rows) {
      row -= plan.tile_rows;
      ++image;
    }
  }
};

// G g G^T of a tile [0] to [3] of 2x2, but for halves of the middle rows and columns, which the transform back has.
__device__ __forceinline__ void transform_gradient(const float (&g)[4], float (&points)[kPoints]) {
  float rows[4][2];
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    rows[0][j] = g[j];
    rows[1][j] = g[j] + g[2 + j];
    rows[2][j] = g[j] - g[2 + j];
    rows[3][j] = g[2 + j];
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    points[4 * i] = rows[i][0];
    points[4 * i + 1] = rows[i][0] + rows[i][1];
    points[4 * i + 2] = rows[i][0] - rows[i][1];
    points[4 * i + 3] = rows[i][1];
  }
}

__device__ __forceinline__ void transform_back_four(float a, float b, float c, float d, float& first, float& second,
                                                    float& third) {
  const float sum = 0.5F * (b + c);
  first = a + sum;
  second = 0.5F * (b - c);
  third = sum - d;
}

// What a thread loads: of its tile, the patch in one channel of x and the tile in two channels of dy.
class Source {
 public:
  __device__ Source(const float* dy, const float* x, const Plan& plan, int first_tile, int row, int column, int group)
      : dy_(dy), x_(x), at_(first_tile + static_cast<int>(threadIdx.x % kDepth), plan), step_(kDepth, plan) {
    const Convolution& shape = plan.shape;
#pragma unroll
    for (int i = 0; i < 2; ++i) filter_[i] = row + 32 * i < shape.outputs ? group * shape.outputs + row + 32 * i : -1;
    channel_ = column < shape.inputs ? group * shape.inputs + column : -1;
  }

  __device__ void load(const Plan& plan, bool inside, float (&patch)[kPoints], float (&tiles)[2][4]) {
    const Convolution& shape = plan.shape;
    const int row = at_.row * 2 - shape.pad_rows;
    const int column = at_.column * 2 - shape.pad_columns;
    const int plane = shape.rows * shape.columns;
    const int from = (at_.image * shape.groups * shape.inputs + channel_) * plane + row * shape.columns + column;
    bool columns[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) columns[j] = column + j >= 0 && column + j < shape.columns;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool row_inside = inside && channel_ >= 0 && row + i >= 0 && row + i < shape.rows;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        patch[4 * i + j] = row_inside && columns[j] ? __ldg(x_ + from + i * shape.columns + j) : 0.0F;
      }
    }
    const int result_plane = shape.result_rows * shape.result_columns;
#pragma unroll
    for (int f = 0; f < 2; ++f) {
      const int start = (at_.image * shape.groups * shape.outputs + filter_[f]) * result_plane +
                        at_.row * 2 * shape.result_columns + at_.column * 2;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool is = inside && filter_[f] >= 0 && at_.row * 2 + i / 2 < shape.result_rows &&
                        at_.column * 2 + i % 2 < shape.result_columns;
        tiles[f][i] = is ? __ldg(dy_ + start + i / 2 * shape.result_columns + i % 2) : 0.0F;
      }
    }
    at_.advance(step_, plan);
  }

 private:
  const float* dy_;
  const float* x_;
  Tile at_;
  Tile step_;
  int filter_[2];
  int channel_;
};

__global__ __launch_bounds__(kThreads, 1) void gradient_of_share(const float* dy, const float* x, float* parts,
                                                                 Plan plan) {
  extern __shared__ __align__(16) float shared[];
  const int first_row = static_cast<int>(blockIdx.x) % plan.row_blocks * kRows;
  const int first_column = static_cast<int>(blockIdx.x) / plan.row_blocks * kColumns;
  const int share = static_cast<int>(blockIdx.y);
  const int group = static_cast<int>(blockIdx.z);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int depth = static_cast<int>(threadIdx.x) % kDepth;
  const int line = static_cast<int>(threadIdx.x) / kDepth;
  const int first_tile = share * plan.tiles_of_share;
  const int tiles = min(plan.tiles_of_share, plan.tiles - first_tile);
  const int steps = cuda::divide_up(tiles, kDepth);
  const Place place;
  Source source(dy, x, plan, first_tile, first_row + line, first_column + line, group);

  float patch[kPoints];
  float gradient[2][4];
  const auto load = [&](int step) { source.load(plan, step * kDepth + depth < tiles, patch, gradient); };
  const auto store = [&](int step) {
    float* stage = shared + step % 2 * kStage;
#pragma unroll
    for (int f = 0; f < 2; ++f) {
      float points[kPoints];
      transform_gradient(gradient[f], points);
#pragma unroll
      for (int p = 0; p < kPoints; ++p) stage[depth * kGradientStep + p * kRows + line + 32 * f] = points[p];
    }
    transform_patch(patch);
    float* images = stage + kDepth * kGradientStep + depth * kImageStep + line;
#pragma unroll
    for (int p = 0; p < kPoints; ++p) images[p * kColumns] = patch[p];
  };

  Sums sums = {};
  load(0);
  store(0);
  __syncthreads();
  for (int step = 0; step < steps; ++step) {
    const bool more = step + 1 < steps;
    if (more) load(step + 1);
    const float* stage = shared + step % 2 * kStage;
    multiply<kGradientStep, kImageStep>(stage, stage + kDepth * kGradientStep, place, sums);
    if (more) store(step + 1);
    __syncthreads();
  }

  float* part = parts + share * plan.weights();
  const auto finish_rows = [&](int exchanged) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = warp + 8 * i;
      float m[kPoints];
      load_exchange(shared, row, lane, m);
      const int k = first_row + exchanged + row;
      const int c = first_column + lane;
      if (k >= plan.shape.outputs || c >= plan.shape.inputs) continue;
      float half[3][4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        transform_back_four(m[j], m[4 + j], m[8 + j], m[12 + j], half[0][j], half[1][j], half[2][j]);
      }
      float* to = part + (static_cast<int64_t>(group * plan.shape.outputs + k) * plan.shape.inputs + c) * kTaps;
#pragma unroll
      for (int r = 0; r < 3; ++r) {
        transform_back_four(half[r][0], half[r][1], half[r][2], half[r][3], to[3 * r], to[3 * r + 1], to[3 * r + 2]);
      }
    }
  };
  store_exchange<0>(shared, place, sums);
  finish_rows(0);
  __syncthreads();
  store_exchange<32>(shared, place, sums);
  finish_rows(32);
}

__global__ void add_shares(const float* parts, float* dw, int64_t weights, int shares) {
  const int64_t i = cuda::thread_index();
  if (i >= weights) return;
  float sum = 0.0F;
#pragma unroll 8
  for (int share = 0; share < shares; ++share) sum += parts[share * weights + i];
  dw[i] = sum;
}

}  // namespace

uint64_t f2x2_wgrad_workspace_bytes(const Convolution& convolution, int multiprocessors) {
  const Plan plan(convolution, multiprocessors);
  if (plan.shares == 1) return 0;
  return sizeof(float) * static_cast<uint64_t>(plan.shares) * static_cast<uint64_t>(plan.weights());
}

void f2x2_wgrad(const Convolution& convolution, const float* dy, const float* x, float* dw, float* workspace,
                int multiprocessors, cudaStream_t stream) {
  const Plan plan(convolution, multiprocessors);
  constexpr unsigned kBytes = kShared * sizeof(float);
  allow_shared_memory(gradient_of_share, kBytes);
  const dim3 grid(static_cast<unsigned>(plan.row_blocks * plan.column_blocks), static_cast<unsigned>(plan.shares),
                  static_cast<unsigned>(convolution.groups));
  launch(gradient_of_share, {grid, dim3(kThreads), kBytes}, stream, dy, x, plan.shares == 1 ? dw : workspace, plan);
  if (plan.shares > 1) {
    launch(add_shares, thread_each(plan.weights()), stream, workspace, dw, plan.weights(), plan.shares);
  }
}

}  // namespace gpunn::cuda_tiled::winograd
