// conv:4, Winograd F(4x4, 3x3), for the forward pass and the data gradient. It takes 36 products for each pair of
// channels and tile of 4x4 instead of 144, four times fewer. The transformed images are 2.25 times as large as the
// images; those of F(2x2, 3x3) are four times as large. The 36 points of a tile do not fit a block's registers. So the
// transforms are separate kernels, and one launch between them makes the 36 matrix products.
//
// The transforms lose digits: see f4x4_transforms.cuh. winograd_variants.cu says where the error bound of the
// conformance tests allows it.
//
// H200, 3x3, batch 128, forward and data gradient: 71 TFLOP/s of the direct convolution for 64 channels at 32x32, 94
// for 128 at 16x16, 112 for 256 at 8x8, 96 for 512 at 4x4. That is 1.3 to 1.7 times conv:3, and with the weight
// gradient 1.6 times it (geometric means 90 and 57). The products take half to two thirds of the time.
#include "conv/winograd/batched_product.hpp"
#include "conv/winograd/f4x4_transforms.cuh"
#include "conv/winograd/winograd.hpp"
#include "conv/winograd/winograd_filters.cuh"
#include "cuda_common/launch.hpp"

namespace gpunn::cuda_tiled::winograd {
namespace {

using cuda::launch;

constexpr int kThreads = 128;  // of the transform back

struct Plan {
  Convolution shape;
  int images_at_once;
  LargeTiles tiles;  // of a chunk
  int tile_line;
  int filter_line;
  conv::TileChoice product;

  Plan(const Convolution& c, int multiprocessors)
      : shape(c),
        images_at_once(images_of_chunk(c.batch, bytes_of_image(c))),
        tiles(c, images_at_once),
        tile_line(multiple_of_four(tiles.count)),
        filter_line(multiple_of_four(c.outputs)),
        product(conv::batched_product_tile(kLargePoints * c.groups, c.outputs, tiles.count, c.inputs, multiprocessors,
                                           1)) {}
  static int64_t bytes_of_image(const Convolution& c) {
    return int64_t{sizeof(float)} * c.groups * (c.inputs + c.outputs) * kLargePoints * LargeTiles(c, 1).count;
  }
  // Numbers from a point's matrix to the next.
  __host__ __device__ int64_t filter_point() const { return int64_t{shape.inputs} * filter_line; }
  __host__ __device__ int64_t image_point() const { return int64_t{shape.inputs} * tile_line; }
  __host__ __device__ int64_t result_point() const { return int64_t{shape.outputs} * tile_line; }
  int64_t filters() const { return shape.groups * kLargePoints * filter_point(); }
  int64_t images() const { return shape.groups * kLargePoints * image_point(); }
  int64_t results() const { return shape.groups * kLargePoints * result_point(); }
};

struct FilterTransform {
  static constexpr int kPoints = kLargePoints;
  __device__ static void apply(const float (&g)[9], float (&u)[kPoints]) { transform_large_taps<3>(g, u); }
};

// [group][point][input][output].
struct FilterLayout {
  int inputs;
  int line;
  int64_t point_stride;

  __device__ bool holds(int output, int input) const { return output < line && input < inputs; }
  __device__ int64_t at(int group, int output, int input) const {
    return group * kLargePoints * point_stride + static_cast<int64_t>(input) * line + output;
  }
};

// Of x: a thread a tile of a channel, to [group][point][channel][tile].
__device__ __forceinline__ void transform_image(const float* x, float* to, int index, int tiles, const Plan& plan) {
  const Convolution& shape = plan.shape;
  const int tile = index % tiles;
  const int channel = index / tiles;
  if (channel >= shape.groups * shape.inputs) return;
  const LargeTile at(tile, plan.tiles);
  const int64_t plane = static_cast<int64_t>(at.image) * shape.groups * shape.inputs + channel;
  float d[kLargePoints];
  load_large_patch(x + plane * shape.rows * shape.columns, shape, at, d);
  transform_large_patch(d);
  const int64_t point = plan.image_point();
  to += channel / shape.inputs * kLargePoints * point + static_cast<int64_t>(channel % shape.inputs) * plan.tile_line +
        tile;
#pragma unroll
  for (int p = 0; p < kLargePoints; ++p) to[p * point] = d[p];
}

// The first blocks transform the filters, where `filter_grid` has any, and the others a chunk of images.
template <bool turned>
__global__ __launch_bounds__(kFilterThreads) void transform_operands(const float* x, const float* w, float* images,
                                                                     float* filters, dim3 filter_grid, int tiles,
                                                                     FilterLayout layout, Plan plan) {
  const unsigned filter_blocks = filter_grid.x * filter_grid.y * filter_grid.z;
  if (blockIdx.x < filter_blocks) {
    const dim3 block(blockIdx.x % filter_grid.x, blockIdx.x / filter_grid.x % filter_grid.y,
                     blockIdx.x / filter_grid.x / filter_grid.y);
    transform_filter_block<FilterTransform, FilterLayout, turned>(w, filters, plan.shape, layout, block);
  } else {
    const auto index = static_cast<int>((blockIdx.x - filter_blocks) * kFilterThreads + threadIdx.x);
    transform_image(x, images, index, tiles, plan);
  }
}

// [group][point][channel][tile] to y.
__global__ __launch_bounds__(kThreads) void transform_results(const float* from, Epilogue epilogue, float* y, int tiles,
                                                              Plan plan) {
  const int tile = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  const int channel = static_cast<int>(blockIdx.y);
  if (tile >= tiles) return;
  const Convolution& shape = plan.shape;
  const int group = channel / shape.outputs;
  const int64_t point = plan.result_point();
  from += group * kLargePoints * point + static_cast<int64_t>(channel % shape.outputs) * plan.tile_line + tile;
  float m[kLargePoints];
#pragma unroll
  for (int p = 0; p < kLargePoints; ++p) m[p] = from[p * point];
  float sums[kLargeTile * kLargeTile];
  transform_large_back<kLargeTile>(m, sums);
  const float bias = epilogue.bias != nullptr ? epilogue.bias[channel] : 0.0F;
#pragma unroll
  for (float& sum : sums) {
    sum += bias;
    if (epilogue.relu && sum < 0.0F) sum = 0.0F;
  }
  const LargeTile at(tile, plan.tiles);
  const int64_t plane = static_cast<int64_t>(at.image) * shape.groups * shape.outputs + channel;
  y += (plane * shape.result_rows + at.row) * shape.result_columns + at.column;
#pragma unroll
  for (int i = 0; i < kLargeTile; ++i) {
    if (at.row + i >= shape.result_rows) return;
    float* row = y + i * shape.result_columns;
    const float* values = sums + i * kLargeTile;
    if (shape.result_columns % kLargeTile == 0) {
      *reinterpret_cast<float4*>(row) = make_float4(values[0], values[1], values[2], values[3]);
      continue;
    }
#pragma unroll
    for (int j = 0; j < kLargeTile; ++j) {
      if (at.column + j < shape.result_columns) row[j] = values[j];
    }
  }
}

}  // namespace

uint64_t f4x4_fprop_workspace_bytes(const Convolution& convolution, int multiprocessors) {
  const Plan plan(convolution, multiprocessors);
  return sizeof(float) * static_cast<uint64_t>(plan.filters() + plan.images() + plan.results());
}

void f4x4_fprop(const Convolution& c, const float* x, const float* w, const Epilogue& epilogue, float* y,
                float* workspace, int multiprocessors, cudaStream_t stream) {
  const Plan plan(c, multiprocessors);
  float* filters = workspace;
  float* images = filters + plan.filters();
  float* results = images + plan.images();
  const auto groups = static_cast<unsigned>(c.groups);
  const FilterLayout layout{c.inputs, plan.filter_line, plan.filter_point()};
  dim3 filter_grid(cuda::grid_size(plan.filter_line, kFilterLanes), cuda::grid_size(c.inputs, kFilterInputs), groups);
  const int64_t x_image = int64_t{c.groups} * c.inputs * c.rows * c.columns;
  const int64_t y_image = int64_t{c.groups} * c.outputs * c.result_rows * c.result_columns;
  for (int first = 0; first < c.batch; first += plan.images_at_once) {
    const int tiles = LargeTiles(c, std::min(plan.images_at_once, c.batch - first)).count;
    const unsigned tile_blocks = cuda::grid_size(tiles, kThreads);
    const unsigned image_blocks = cuda::grid_size(c.groups * c.inputs * tiles, kFilterThreads);
    launch(c.turned ? transform_operands<true> : transform_operands<false>,
           {dim3(filter_grid.x * filter_grid.y * filter_grid.z + image_blocks), dim3(kFilterThreads)}, stream,
           x + first * x_image, w, images, filters, filter_grid, tiles, layout, plan);
    filter_grid.z = 0;
    conv::batched_product({.batch = kLargePoints * c.groups,
                           .m = c.outputs,
                           .n = tiles,
                           .k = c.inputs,
                           .a_line = plan.filter_line,
                           .b_line = plan.tile_line,
                           .d_line = plan.tile_line,
                           .a_matrix = plan.filter_point(),
                           .b_matrix = plan.image_point(),
                           .d_matrix = plan.result_point(),
                           .tile = plan.product},
                          filters, images, results, stream);
    launch(transform_results, {dim3(tile_blocks, groups * static_cast<unsigned>(c.outputs)), dim3(kThreads)}, stream,
           results, epilogue, y + first * y_image, tiles, plan);
  }
}

}  // namespace gpunn::cuda_tiled::winograd
