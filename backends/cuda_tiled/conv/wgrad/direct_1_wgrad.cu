// direct:1 of the weight gradient, a direct convolution for few channels. dw[k,c,r,s] is the sum over images and
// positions of dy[n,k,p,q] x[n,c,p+r,q+s]. cuda_naive loads two numbers for each product; direct:2 (direct_2_wgrad.cu)
// makes more products a load than this.
//
// First pass: a thread block processes a few images, one after another, and some of the filters of a group. It copies
// x, with its zero border, and dy to shared memory. Rows are an odd number of floats apart, so that threads on
// neighbouring rows read different banks. A thread walks along some rows for one k, c and r and keeps the sums of all
// taps s in registers. One load of dy and one of x thus give as many products as there are taps. The threads' sums are
// added in shared memory, in the order of their rows, and the block writes its share.
//
// Second pass: the blocks' shares are added, in a fixed order too. Equal inputs give equal bits.
#include <gpunn/plugin.hpp>

#include <algorithm>

#include "conv/direct/direct_convolution.hpp"
#include "cuda_common/launch.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {
namespace {

using backends::ConvolutionShape;
using backends::require;

constexpr int kMostTaps = 7;
constexpr int kMostThreads = 512;
constexpr unsigned kMostSharedBytes = 96 * 1024;  // two blocks to a multiprocessor of sm_80 and later
constexpr int64_t kMostOutputs = 16384;           // of a block; beyond, a matrix product serves better
constexpr int kBlocksWanted = 256;

__host__ __device__ constexpr int odd(int n) { return n | 1; }

struct Sizes {
  int channels, filters;  // of a group
  int height, width;      // of x with its border, width padded to an odd number
  int rows, columns;      // of y
  int pitch;              // of y's rows in shared memory
  int taps_r, taps_s;
  int pad_r, pad_s;
  int in_rows, in_columns;  // of x
  int images, groups;
};

Sizes sizes_of(const ConvolutionShape& shape) {
  const auto narrow = [](int64_t value) { return static_cast<int>(value); };
  Sizes z{};
  z.channels = narrow(shape.group_inputs);
  z.filters = narrow(shape.group_outputs);
  z.taps_r = narrow(shape.rows.taps);
  z.taps_s = narrow(shape.columns.taps);
  z.rows = narrow(shape.rows.outputs);
  z.columns = narrow(shape.columns.outputs);
  z.pitch = odd(z.columns);
  z.height = z.rows + z.taps_r - 1;
  z.width = odd(z.columns + z.taps_s - 1);
  z.pad_r = narrow(shape.rows.pad);
  z.pad_s = narrow(shape.columns.pad);
  z.in_rows = narrow(shape.rows.inputs);
  z.in_columns = narrow(shape.columns.inputs);
  z.images = narrow(shape.batch);
  z.groups = narrow(shape.groups);
  return z;
}

// Grid: chunks of images, parts of the filters, groups. partial[chunk][group][filter][channel][r][s].
template <int S>
__global__ void __launch_bounds__(kMostThreads)
    partial_gradient(const float* dy, const float* x, float* partial, Sizes z, int images_per_block,
                     int filters_per_block, int row_splits) {
  extern __shared__ float shared[];
  const int group = static_cast<int>(blockIdx.z);
  const int first_filter = static_cast<int>(blockIdx.y) * filters_per_block;
  const int filters = min(filters_per_block, z.filters - first_filter);
  const int first_image = static_cast<int>(blockIdx.x) * images_per_block;
  const int last_image = min(first_image + images_per_block, z.images);
  const int x_plane = z.height * z.width;
  const int y_plane = z.rows * z.pitch;
  float* const xs = shared;
  float* const ys = xs + z.channels * x_plane;
  float* const sums = ys + filters_per_block * y_plane;  // [item][split][S]

  const int items = filters * z.channels * z.taps_r;
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  for (int i = thread; i < items * row_splits * S; i += threads) sums[i] = 0.0F;

  for (int image = first_image; image < last_image; ++image) {
    __syncthreads();  // the image before is done with
    const float* const x_image =
        x + (static_cast<int64_t>(image) * z.groups + group) * z.channels * z.in_rows * z.in_columns;
    for (int i = thread; i < z.channels * x_plane; i += threads) {
      const int column = i % z.width - z.pad_s;
      const int row = i / z.width % z.height - z.pad_r;
      const int channel = i / x_plane;
      const bool inside = row >= 0 && row < z.in_rows && column >= 0 && column < z.in_columns;
      xs[i] = inside ? x_image[(channel * z.in_rows + row) * z.in_columns + column] : 0.0F;
    }
    const float* const y_image =
        dy + ((static_cast<int64_t>(image) * z.groups + group) * z.filters + first_filter) * z.rows * z.columns;
    for (int i = thread; i < filters * z.rows * z.columns; i += threads) {
      const int column = i % z.columns;
      ys[i / z.columns * z.pitch + column] = y_image[i];
    }
    __syncthreads();

    for (int work = thread; work < items * row_splits; work += threads) {
      const int split = work % row_splits;
      const int item = work / row_splits;
      const int r = item % z.taps_r;
      const int channel = item / z.taps_r % z.channels;
      const int filter = item / (z.taps_r * z.channels);
      float sum[S];
#pragma unroll
      for (int s = 0; s < S; ++s) sum[s] = sums[work * S + s];
      for (int p = split; p < z.rows; p += row_splits) {
        const float* const y_row = ys + filter * y_plane + p * z.pitch;
        const float* const x_row = xs + channel * x_plane + (p + r) * z.width;
        float window[S];
#pragma unroll
        for (int s = 1; s < S; ++s) window[s] = x_row[s - 1];
        for (int q = 0; q < z.columns; ++q) {
#pragma unroll
          for (int s = 0; s + 1 < S; ++s) window[s] = window[s + 1];
          window[S - 1] = x_row[q + S - 1];
          const float gradient = y_row[q];
#pragma unroll
          for (int s = 0; s < S; ++s) sum[s] = fmaf(gradient, window[s], sum[s]);
        }
      }
#pragma unroll
      for (int s = 0; s < S; ++s) sums[work * S + s] = sum[s];
    }
  }
  __syncthreads();
  const int64_t outputs = static_cast<int64_t>(z.channels) * z.taps_r * S;
  float* const to =
      partial + ((static_cast<int64_t>(blockIdx.x) * z.groups + group) * z.filters + first_filter) * outputs;
  for (int i = thread; i < items * S; i += threads) {
    const float* const of_splits = sums + i / S * row_splits * S + i % S;
    float total = 0.0F;
    for (int split = 0; split < row_splits; ++split) total += of_splits[split * S];
    to[i] = total;
  }
}

// dw[i] = the sum over chunks of partial[chunk][i]: 32 neighbouring outputs and 8 shares of the chunks a block.
__global__ void add_chunks(const float* partial, float* dw, int64_t n, int chunks) {
  __shared__ float sums[8][33];
  const int64_t i = int64_t{blockIdx.x} * 32 + threadIdx.x;
  float sum = 0.0F;
  if (i < n) {
    for (int chunk = static_cast<int>(threadIdx.y); chunk < chunks; chunk += 8) sum += partial[chunk * n + i];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || i >= n) return;
  for (int share = 1; share < 8; ++share) sum += sums[share][threadIdx.x];
  dw[i] = sum;
}

int64_t weights_of(const ConvolutionShape& shape) {
  return shape.groups * shape.group_outputs * shape.group_inputs * shape.rows.taps * shape.columns.taps;
}

using PartialKernel = void (*)(const float*, const float*, float*, Sizes, int, int, int);

PartialKernel kernel_of(int taps) {
  constexpr PartialKernel kKernels[kMostTaps] = {partial_gradient<1>, partial_gradient<2>, partial_gradient<3>,
                                                 partial_gradient<4>, partial_gradient<5>, partial_gradient<6>,
                                                 partial_gradient<7>};
  return kKernels[taps - 1];
}

}  // namespace

uint64_t DirectWgrad::workspace_bytes() const {
  return static_cast<uint64_t>(chunks) * static_cast<uint64_t>(weights_of(shape)) * sizeof(float);
}

DirectWgrad direct_wgrad_of(const ConvolutionShape& shape) {
  require(shape.rows.stride == 1 && shape.columns.stride == 1, "wants a stride of 1");
  require(shape.rows.dilation == 1 && shape.columns.dilation == 1, "wants a dilation of 1");
  require(shape.columns.taps <= kMostTaps, "wants filters of at most 7 columns");
  require(shape.groups <= 65535 && shape.batch <= (1 << 20), "wants fewer groups and images");
  require(shape.group_inputs * shape.group_outputs <= kMostOutputs, "wants fewer channels");

  const Sizes z = sizes_of(shape);
  DirectWgrad plan;
  plan.shape = shape;
  // Fewer filters a block until x, dy and the sums fit, and there are enough blocks for the GPU.
  for (plan.filters_per_block = z.filters; plan.filters_per_block >= 1; plan.filters_per_block /= 2) {
    const int64_t items = int64_t{plan.filters_per_block} * z.channels * z.taps_r;
    plan.row_splits = static_cast<int>(std::clamp<int64_t>(kMostThreads / items, 1, z.rows));
    const int64_t floats = int64_t{z.channels} * z.height * z.width +
                           int64_t{plan.filters_per_block} * z.rows * z.pitch + items * plan.row_splits * z.taps_s;
    if (items * z.taps_s > kMostOutputs || floats > int64_t{kMostSharedBytes / sizeof(float)}) continue;
    plan.shared_bytes = static_cast<unsigned>(floats * static_cast<int64_t>(sizeof(float)));
    const int64_t blocks = int64_t{z.images} * z.groups * (cuda::divide_up(z.filters, plan.filters_per_block));
    if (blocks >= kBlocksWanted || plan.filters_per_block == 1 || items < kMostThreads / 4) break;
  }
  require(plan.filters_per_block >= 1, "wants an image and its gradient in shared memory");
  const int64_t parts = cuda::divide_up(z.filters, plan.filters_per_block);
  require(parts <= 65535, "wants fewer filters");
  const int64_t blocks_for_images = std::max<int64_t>(1, kBlocksWanted / (parts * z.groups));
  plan.images_per_block = static_cast<int>(cuda::divide_up(z.images, blocks_for_images));
  plan.chunks = cuda::divide_up(z.images, plan.images_per_block);
  return plan;
}

void run_direct_wgrad(const DirectWgrad& plan, const float* dy, const float* x, float* dw, float* workspace,
                      cudaStream_t stream) {
  const Sizes z = sizes_of(plan.shape);
  const PartialKernel kernel = kernel_of(z.taps_s);
  allow_shared_memory(kernel, plan.shared_bytes);
  const auto parts = cuda::grid_size(z.filters, plan.filters_per_block);
  const int64_t work = int64_t{plan.filters_per_block} * z.channels * z.taps_r * plan.row_splits;
  const auto threads = static_cast<unsigned>(std::clamp<int64_t>((work + 31) / 32 * 32, 64, kMostThreads));
  cuda::launch(kernel,
               {dim3(static_cast<unsigned>(plan.chunks), parts, static_cast<unsigned>(z.groups)), dim3(threads),
                plan.shared_bytes},
               stream, dy, x, workspace, z, plan.images_per_block, plan.filters_per_block, plan.row_splits);
  const int64_t n = weights_of(plan.shape);
  cuda::launch(add_chunks, {dim3(static_cast<unsigned>((n + 31) / 32)), dim3(32, 8)}, stream, workspace, dw, n,
               plan.chunks);
}

}  // namespace gpunn::cuda_tiled
