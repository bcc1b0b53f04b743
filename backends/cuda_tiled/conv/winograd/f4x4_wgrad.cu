// conv:4, Winograd F(3x3, 4x4), for the weight gradient. A 4x4 tile of dy and its 6x6 patch of x are both transformed
// to 36 points, and their products are summed over all tiles. These are 36 matrix products [channels of dy, tiles] x
// [tiles, channels of x] in one launch. The tiles are split in shares if the channels alone give too few blocks, and
// the shares' sums are added in order.
//
// H200, 3x3, batch 128: 70 TFLOP/s of the direct sum for 64 channels at 32x32, 82 for 128 at 16x16, 95 for 256 at 8x8,
// 100 for 512 at 4x4; 1.4 to 1.9 times conv:3.
#include <algorithm>

#include "conv/shares.hpp"
#include "conv/winograd/batched_product.hpp"
#include "conv/winograd/f4x4_transforms.cuh"
#include "conv/winograd/winograd.hpp"
#include "cuda_common/launch.hpp"

namespace gpunn::cuda_tiled::winograd {
namespace {

using cuda::launch;

constexpr int kThreads = 256;
constexpr int kTiles = 8;  // of a block, times 32 channels
constexpr int kChannels = 32;

// Numbers from a point's matrix to the next.
__host__ __device__ int64_t point_of(int tiles, int line) { return int64_t{tiles} * line; }

struct Plan {
  Convolution shape;
  int images_at_once;
  int chunks;
  LargeTiles tiles;  // of a chunk
  int input_line;
  int output_line;
  conv::TileChoice product;

  Plan(const Convolution& c, int multiprocessors)
      : shape(c),
        images_at_once(images_of_chunk(c.batch, bytes_of_image(c))),
        chunks(cuda::divide_up(c.batch, images_at_once)),
        tiles(c, images_at_once),
        input_line(multiple_of_four(c.inputs)),
        output_line(multiple_of_four(c.outputs)) {
    constexpr int kMostShares = 64;
    const int batch = kLargePoints * c.groups;
    product = conv::batched_product_tile(batch, c.outputs, c.inputs, tiles.count, multiprocessors,
                                         std::max(1, std::min(kMostShares, 65535 / batch)));
  }
  static int64_t bytes_of_image(const Convolution& c) {
    return int64_t{sizeof(float)} * c.groups * (c.inputs + c.outputs) * kLargePoints * LargeTiles(c, 1).count;
  }
  int64_t images() const { return point_of(tiles.count, input_line) * kLargePoints * shape.groups; }
  int64_t gradients() const { return point_of(tiles.count, output_line) * kLargePoints * shape.groups; }
  int64_t sums() const { return int64_t{shape.groups} * kLargePoints * shape.outputs * input_line; }
  int parts() const { return chunks * product.shares; }
};

// Planes are read by tiles and [group][point][tile][channel] is written by channels: the points change threads in
// shared memory. The line makes the stores of 8 tiles x 4 channels conflict-free.
constexpr int kLine = kChannels + 4;

struct Place {
  int first_channel;
  int tile = static_cast<int>(blockIdx.x) * kTiles + static_cast<int>(threadIdx.x) % kTiles;
  int channel;

  __device__ explicit Place(int channel_block)
      : first_channel(channel_block * kChannels), channel(first_channel + static_cast<int>(threadIdx.x) / kTiles) {}
};

__device__ __forceinline__ void store_points(const float (&points)[kLargePoints], float* to, int tiles, int channels,
                                             int line, int first_channel) {
  __shared__ float exchange[kLargePoints][kTiles][kLine];
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int p = 0; p < kLargePoints; ++p) exchange[p][thread % kTiles][thread / kTiles] = points[p];
  __syncthreads();
  const int tile = static_cast<int>(blockIdx.x) * kTiles + thread / kChannels;
  const int channel = first_channel + thread % kChannels;
  if (tile >= tiles || channel >= channels) return;
  const int64_t point = point_of(tiles, line);
  to += blockIdx.z * kLargePoints * point + static_cast<int64_t>(tile) * line + channel;
#pragma unroll
  for (int p = 0; p < kLargePoints; ++p) to[p * point] = exchange[p][thread / kChannels][thread % kChannels];
}

__device__ __forceinline__ void transform_image(const float* x, float* to, int tiles, const Plan& plan,
                                                const Place& place) {
  const Convolution& shape = plan.shape;
  float d[kLargePoints] = {};
  if (place.tile < tiles && place.channel < shape.inputs) {
    const LargeTile at(place.tile, plan.tiles);
    const int64_t plane = (static_cast<int64_t>(at.image) * shape.groups + blockIdx.z) * shape.inputs + place.channel;
    load_large_patch(x + plane * shape.rows * shape.columns, shape, at, d);
    transform_large_patch(d);
  }
  store_points(d, to, tiles, shape.inputs, plan.input_line, place.first_channel);
}

__device__ __forceinline__ void transform_gradient(const float* dy, float* to, int tiles, const Plan& plan,
                                                   const Place& place) {
  const Convolution& shape = plan.shape;
  float points[kLargePoints] = {};
  if (place.tile < tiles && place.channel < shape.outputs) {
    const LargeTile at(place.tile, plan.tiles);
    const int64_t plane = (static_cast<int64_t>(at.image) * shape.groups + blockIdx.z) * shape.outputs + place.channel;
    const float* from = dy + (plane * shape.result_rows + at.row) * shape.result_columns + at.column;
    float tile[kLargeTile * kLargeTile];
#pragma unroll
    for (int i = 0; i < kLargeTile; ++i) {
#pragma unroll
      for (int j = 0; j < kLargeTile; ++j) {
        const bool inside = at.row + i < shape.result_rows && at.column + j < shape.result_columns;
        tile[i * kLargeTile + j] = inside ? __ldg(from + i * shape.result_columns + j) : 0.0F;
      }
    }
    transform_large_taps<kLargeTile>(tile, points);
  }
  store_points(points, to, tiles, shape.outputs, plan.output_line, place.first_channel);
}

// The first blocks along y transform channels of x, the others of dy.
__global__ __launch_bounds__(kThreads) void transform_operands(const float* x, const float* dy, float* images,
                                                               float* gradients, int image_blocks, int tiles,
                                                               Plan plan) {
  const int block = static_cast<int>(blockIdx.y);
  if (block < image_blocks) {
    transform_image(x, images, tiles, plan, Place(block));
  } else {
    transform_gradient(dy, gradients, tiles, plan, Place(block - image_blocks));
  }
}

// [group][point][output][input] to dw.
__global__ __launch_bounds__(kThreads) void transform_sums(const float* sums, float* dw, Plan plan) {
  const Convolution& shape = plan.shape;
  const int input = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  const int output = static_cast<int>(blockIdx.y);
  if (input >= shape.inputs) return;
  const int64_t point = static_cast<int64_t>(shape.outputs) * plan.input_line;
  sums += blockIdx.z * kLargePoints * point + static_cast<int64_t>(output) * plan.input_line + input;
  float m[kLargePoints];
#pragma unroll
  for (int p = 0; p < kLargePoints; ++p) m[p] = sums[p * point];
  float gradient[9];
  transform_large_back<3>(m, gradient);
  dw += ((static_cast<int64_t>(blockIdx.z) * shape.outputs + output) * shape.inputs + input) * 9;
#pragma unroll
  for (int i = 0; i < 9; ++i) dw[i] = gradient[i];
}

}  // namespace

uint64_t f4x4_wgrad_workspace_bytes(const Convolution& convolution, int multiprocessors) {
  const Plan plan(convolution, multiprocessors);
  const int64_t parts = plan.parts() > 1 ? plan.parts() + 1 : 1;
  return sizeof(float) * static_cast<uint64_t>(plan.images() + plan.gradients() + parts * plan.sums());
}

void f4x4_wgrad(const Convolution& c, const float* dy, const float* x, float* dw, float* workspace, int multiprocessors,
                cudaStream_t stream) {
  const Plan plan(c, multiprocessors);
  float* images = workspace;
  float* gradients = images + plan.images();
  float* sums = gradients + plan.gradients();
  float* parts = plan.parts() > 1 ? sums + plan.sums() : sums;
  const auto groups = static_cast<unsigned>(c.groups);
  const int64_t x_image = int64_t{c.groups} * c.inputs * c.rows * c.columns;
  const int64_t dy_image = int64_t{c.groups} * c.outputs * c.result_rows * c.result_columns;
  int used = 0;  // parts: the last chunk may be cut in fewer shares
  for (int first = 0; first < c.batch; first += plan.images_at_once) {
    const int tiles = LargeTiles(c, std::min(plan.images_at_once, c.batch - first)).count;
    const unsigned tile_blocks = cuda::grid_size(tiles, kTiles);
    const unsigned image_blocks = cuda::grid_size(c.inputs, kChannels);
    launch(transform_operands,
           {dim3(tile_blocks, image_blocks + cuda::grid_size(c.outputs, kChannels), groups), dim3(kThreads)}, stream,
           x + first * x_image, dy + first * dy_image, images, gradients, static_cast<int>(image_blocks), tiles, plan);
    conv::TileChoice tile = plan.product;
    tile.shares = static_cast<int>(cuda::divide_up(tiles, tile.depth_of_share));
    conv::batched_product({.batch = kLargePoints * c.groups,
                           .m = c.outputs,
                           .n = c.inputs,
                           .k = tiles,
                           .a_line = plan.output_line,
                           .b_line = plan.input_line,
                           .d_line = plan.input_line,
                           .a_matrix = point_of(tiles, plan.output_line),
                           .b_matrix = point_of(tiles, plan.input_line),
                           .d_matrix = int64_t{c.outputs} * plan.input_line,
                           .tile = tile},
                          gradients, images, parts + used * plan.sums(), stream);
    used += tile.shares;
  }
  if (plan.parts() > 1) conv::add_shares(parts, sums, plan.sums(), used, {}, stream);
  launch(transform_sums,
         {dim3(cuda::grid_size(c.inputs, kThreads), static_cast<unsigned>(c.outputs), groups), dim3(kThreads)}, stream,
         sums, dw, plan);
}

}  // namespace gpunn::cuda_tiled::winograd
