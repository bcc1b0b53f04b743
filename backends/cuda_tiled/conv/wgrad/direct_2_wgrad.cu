// direct:2 of the weight gradient, a direct convolution for few channels. dw[k,c,r,s] is the sum over images and
// positions of dy[n,k,p,q] x[n,c,p+r,q+s].
//
// In direct:1 a thread has the taps of a row of one filter, and two loads give as many products as there are taps. Here
// it has those of up to eight filters. From four pixels of each filter and four of x, in loads of 16 bytes, it makes
// 160 products. x's rows and channels are padded so that the lanes of a warp, which have neighbouring r and c, read
// different banks. Their reads of dy go to the same address. Rows of the images are divided over threads, whose sums
// are added in shared memory. A second kernel adds the blocks' sums. Both use a fixed order: equal inputs give equal
// bits.
//
// Images without padding whose planes have the same layout in shared memory as in global memory are copied in bulk,
// plane by plane (direct_bulk.cuh). If a block has few pixels, it uses 256 threads: twice as many hide more latency,
// but have twice the sums to add. A single instance handles both ways of copying x. In an instance for bulk copies
// alone the compiler loads a filter's pixels just before their products, instead of 30 to 40 products ahead, which is
// slower (H200: 8.2 us instead of 7.8).
//
// H200, 5x5, 6 to 16 channels, 12x12 without padding: batch 512 in 7.8 us, 20.3 TFLOP/s; batch 128 4.5 us, 256 5.6 us,
// 1024 12.0 us. 14x14 with padding, batch 512: 19.6 us, 24.6 TFLOP/s. 14x14 without, batch 128: 6.5 us. 1 to 6
// channels, 28x28, batch 128: 4.2 us. 3x3, 3 to 16 channels, 32x32, batch 128: 10.0 us; 16 to 16, 28x28, batch 64: 17.6
// us.
#include <gpunn/plugin.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

#include "conv/direct/direct_bulk.cuh"
#include "conv/direct/direct_convolution.hpp"
#include "conv/direct/direct_stage.cuh"
#include "cuda_common/launch.hpp"
#include "quads.cuh"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled::direct {
namespace {

using backends::ConvolutionShape;

constexpr int kMostThreads = 512;
// With so few pixels in a block, 256 threads' sums are added up the sooner.
constexpr int kFewPixels = 512;
constexpr int kThreadsOfFew = 256;
constexpr int kBlocksWanted = 132;
constexpr int64_t kMostSharedBytes = 200 * 1024;

struct Wgrad {
  Stage x;
  Stage dy;
  int images = 0;
  int filters = 0;
  int rows = 0, columns = 0;  // of dy
  int taps_r = 0;
  int images_per_block = 1;
  int images_at_once = 1;
  int chunks = 1;
  int k_groups = 1, all_k_groups = 1, parts = 1;
  int items = 1;
  int splits = 1;
  int tk = 4;
  unsigned threads = 0;
  unsigned shared_bytes = 0;
  Divider by_items, by_taps_r, by_channels, by_rows;
  Bulk x_bulk, dy_bulk;
};

// Grid: chunks of images, parts of the filters, groups. partial[chunk][part][group][k][s][item].
// WHOLE: rows of so many fours of columns; 0: of any. kInBulk: x may come in bulk, plane by plane, and dy then too.
template <int S, int TK, int WHOLE, bool kInBulk>
__global__ void __launch_bounds__(kMostThreads)
    wgrad_shares(const float* dy, const float* x, float* partial, Wgrad z, int x_width, int dy_width) {
  constexpr int kQuads = cuda::divide_up(S + 3, 4);
  extern __shared__ float4 shared_fours[];
  float* const shared = reinterpret_cast<float*>(shared_fours);
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int group = static_cast<int>(blockIdx.z);
  const int first_filter = static_cast<int>(blockIdx.y) * z.k_groups * TK;
  const int first_image = static_cast<int>(blockIdx.x) * z.images_per_block;
  const int last_image = min(first_image + z.images_per_block, z.images);
  __shared__ uint64_t barrier;
  uint32_t parity = 0;
  const auto wait = [&] {
    if (dy_width == kBulk) begin_barrier(barrier);
    let_next_kernel_start();
    wait_for_kernel_before();
  };
  if constexpr (!kInBulk) wait();
  float* const xs = shared;
  float* const ys = xs + z.x.floats(z.images_at_once);

  const auto [split, item] = z.by_items(thread);
  const auto [outer, r] = z.by_taps_r(item);
  const auto [k_group, c] = z.by_channels(outer);
  const bool works = split < z.splits;
  // Beyond the last filter lies what is multiplied with the rest and never stored.
  const int of_filters = min(first_filter + k_group * TK, (z.all_k_groups - 1) * TK) * z.dy.plane;
  float sums[TK][S];
#pragma unroll
  for (int k = 0; k < TK; ++k) {
#pragma unroll
    for (int s = 0; s < S; ++s) sums[k][s] = 0.0F;
  }
  if constexpr (kInBulk) wait();
  const int whole = WHOLE != 0 ? WHOLE : z.columns / 4;
  const int rest = WHOLE != 0 ? 0 : z.columns % 4;
  for (int image = first_image; image < last_image; image += z.images_at_once) {
    const int images = min(z.images_at_once, last_image - image);
    if (image != first_image) __syncthreads();  // the images before are done with
    if (kInBulk && x_width == kBulk) {
      if (thread == 0) barrier_expect(&barrier, bulk_bytes(z.x, images) + bulk_bytes(z.dy, images));
      stage_in_bulk(ys, dy, z.dy, z.dy_bulk, image, images, group, barrier);
      stage_in_bulk(xs, x, z.x, z.x_bulk, image, images, group, barrier);
      barrier_wait(&barrier, parity);
    } else {
      if (dy_width == kBulk && thread == 0) {
        barrier_expect(&barrier, images * z.filters * z.dy.plane * 4);
        stage_whole_images(ys, dy, z.dy, image, images, group, barrier);
      }
      stage_images(xs, x, z.x, image, images, group, 0, x_width);
      if (dy_width != kBulk) stage_images(ys, dy, z.dy, image, images, group, 0, dy_width);
      __pipeline_commit();
      __pipeline_wait_prior(0);
      if (dy_width == kBulk) barrier_wait(&barrier, parity);
    }
    parity ^= 1;
    __syncthreads();
    for (int position = split; works && position < images * z.rows; position += z.splits) {
      const auto [at_image, p] = z.by_rows(position);
      const float* from_x = xs + (at_image * z.x.channels + c) * z.x.plane + (p + r) * z.x.pitch;
      const float* from_y = ys + at_image * z.dy.image() + of_filters + p * z.dy.pitch;
      float window[4 * kQuads];
#pragma unroll
      for (int i = 0; i < kQuads - 1; ++i) {
        const float4 four = *reinterpret_cast<const float4*>(from_x + 4 * i);
        window[4 * i] = four.x, window[4 * i + 1] = four.y, window[4 * i + 2] = four.z, window[4 * i + 3] = four.w;
      }
      const auto step = [&](int chunk, int count) {
        const float4 next = *reinterpret_cast<const float4*>(from_x + 4 * (chunk + kQuads - 1));
        constexpr int kLast = 4 * (kQuads - 1);
        window[kLast] = next.x, window[kLast + 1] = next.y, window[kLast + 2] = next.z, window[kLast + 3] = next.w;
        float4 gradient[TK];
#pragma unroll
        for (int k = 0; k < TK; ++k)
          gradient[k] = *reinterpret_cast<const float4*>(from_y + k * z.dy.plane + 4 * chunk);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (j >= count) break;
#pragma unroll
          for (int k = 0; k < TK; ++k) {
            const float value = j == 0   ? gradient[k].x
                                : j == 1 ? gradient[k].y
                                : j == 2 ? gradient[k].z
                                         : gradient[k].w;
#pragma unroll
            for (int s = 0; s < S; ++s) sums[k][s] = fmaf(value, window[j + s], sums[k][s]);
          }
        }
#pragma unroll
        for (int i = 0; i < kLast; ++i) window[i] = window[i + 4];
      };
#pragma unroll(WHOLE != 0 ? WHOLE : 2)
      for (int chunk = 0; chunk < whole; ++chunk) step(chunk, 4);
      if (rest != 0) step(whole, rest);
    }
  }
  __syncthreads();
  if (works) {
#pragma unroll
    for (int k = 0; k < TK; ++k) {
#pragma unroll
      for (int s = 0; s < S; ++s) shared[(k * S + s) * z.items * z.splits + thread] = sums[k][s];
    }
  }
  __syncthreads();
  const int outputs = z.items * TK * S;
  float* const to =
      partial + ((static_cast<int64_t>(blockIdx.x) * z.parts + blockIdx.y) * z.x.groups + group) * outputs;
  const auto sum_of = [&](auto number, int i) {
    const auto [tap, at] = z.by_items(i);
    const float* const from = shared + tap * z.items * z.splits + at;
    using Number = decltype(number);
    number = *reinterpret_cast<const Number*>(from);
#pragma unroll 4
    for (int j = 1; j < z.splits; ++j) number = number + *reinterpret_cast<const Number*>(from + j * z.items);
    *reinterpret_cast<Number*>(to + i) = number;
  };
  if (z.items % 4 == 0) {
    for (int i = 4 * thread; i < outputs; i += 4 * threads) sum_of(float4{}, i);
  } else {
    for (int i = thread; i < outputs; i += threads) sum_of(0.0F, i);
  }
}

constexpr int kShares = 16;

// dw = the sum over chunks: 32 neighbouring numbers and 16 shares of the chunks a block. `n` numbers a chunk.
template <int S, int TK>
__global__ void __launch_bounds__(32 * kShares) add_filter_shares(const float* partial, float* dw, Wgrad z, int n) {
  __shared__ float sums[kShares][33];
  const int i = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  let_next_kernel_start();
  wait_for_kernel_before();
  float sum = 0.0F;
  if (i < n) {
#pragma unroll 8
    for (int chunk = static_cast<int>(threadIdx.y); chunk < z.chunks; chunk += kShares) {
      sum += partial[static_cast<int64_t>(chunk) * n + i];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || i >= n) return;
  for (int share = 1; share < kShares; ++share) sum += sums[share][threadIdx.x];
  const auto [rest, item] = z.by_items(i);
  const int s = rest % S;
  const int k = rest / S % TK;
  const int outer_group = rest / (S * TK);
  const int group = outer_group % z.x.groups;
  const int part = outer_group / z.x.groups;
  const auto [outer, r] = z.by_taps_r(item);
  const auto [k_group, c] = z.by_channels(outer);
  const int filter = (part * z.k_groups + k_group) * TK + k;
  if (k_group >= z.k_groups || filter >= z.filters) return;
  dw[(((static_cast<int64_t>(group) * z.filters + filter) * z.x.channels + c) * z.taps_r + r) * S + s] = sum;
}

using Kernel = void (*)(const float*, const float*, float*, Wgrad, int, int);
using Adder = void (*)(const float*, float*, Wgrad, int);

struct Instance {
  int s, tk;
  int columns;  // 0: any
  Kernel kernel;
  Adder adder;
  bool in_bulk;
};

template <int S, int TK, int WHOLE = 0, bool kInBulk = false>
constexpr Instance instance() {
  return {S, TK, 4 * WHOLE, wgrad_shares<S, TK, WHOLE, kInBulk>, add_filter_shares<S, TK>, kInBulk};
}

constexpr std::array kInstances = {
    instance<5, 8, 2, true>(), instance<5, 3, 7>(), instance<5, 2, 7>(), instance<3, 8, 7>(), instance<3, 8, 8>(),
    instance<5, 4>(),          instance<5, 3>(),    instance<5, 8>(),    instance<3, 4>(),    instance<3, 3>(),
    instance<3, 8>(),          instance<7, 4>(),    instance<1, 4>(),    instance<5, 2>()};

// in_bulk: the kernel takes x in bulk.
bool fit(Wgrad& z, int s, bool in_bulk) {
  z.all_k_groups = cuda::divide_up(z.filters, z.tk);
  const int of_k_group = z.x.channels * z.taps_r;
  z.parts = 1;
  while (cuda::divide_up(z.all_k_groups, z.parts) * of_k_group > kMostThreads && z.parts < z.all_k_groups) ++z.parts;
  z.k_groups = cuda::divide_up(z.all_k_groups, z.parts);
  z.items = z.k_groups * of_k_group;
  if (z.items > kMostThreads) return false;
  if (z.items % 32 > 24 || z.items > 256) z.items = std::min(kMostThreads, cuda::divide_up(z.items, 32) * 32);
  z.dy.rows = z.rows;
  z.dy.quads = cuda::divide_up(z.columns, 4);
  z.dy.pitch = z.dy.quads * 4;
  z.dy.plane = z.dy.rows * z.dy.pitch;
  z.x.rows = z.rows + z.taps_r - 1;
  z.x.quads = cuda::divide_up(z.columns, 4) + cuda::divide_up(s + 3, 4) - 1;
  z.x.pitch = odd_pitch(4 * z.x.quads);
  z.x.plane = z.x.rows * z.x.pitch;
  // Channels begin where the next row of taps would, in the banks.
  while (z.x.plane / 4 % 8 != z.taps_r * (z.x.pitch / 4) % 8) z.x.plane += 4;
  if (in_bulk) z.x_bulk = bulk_of(z.x), z.dy_bulk = bulk_of(z.dy);
  const int blocks_for_images = std::max(1, kBlocksWanted / (z.parts * z.x.groups));
  z.images_per_block = cuda::divide_up(z.images, blocks_for_images);
  z.chunks = cuda::divide_up(z.images, z.images_per_block);
  for (z.images_at_once = std::min(z.images_per_block, 8); z.images_at_once >= 1; --z.images_at_once) {
    const bool few = z.x_bulk.floats > 0 && z.images_per_block * z.rows * z.columns <= kFewPixels;
    const int threads = few ? std::max(kThreadsOfFew, z.items) : kMostThreads;
    z.splits = std::clamp(threads / z.items, 1, z.images_at_once * z.rows);
    const int64_t inputs = z.x.floats(z.images_at_once) + z.dy.floats(z.images_at_once) +
                           int64_t{z.all_k_groups * z.tk - z.filters} * z.dy.plane;
    const int64_t results = int64_t{z.items} * z.splits * z.tk * s;
    const int64_t bytes = std::max(inputs, results) * static_cast<int64_t>(sizeof(float));
    if (bytes > kMostSharedBytes) continue;
    z.shared_bytes = static_cast<unsigned>(bytes);
    z.threads = static_cast<unsigned>(cuda::divide_up(z.items * z.splits, 32) * 32);
    return true;
  }
  return false;
}

}  // namespace

struct WgradPlan::Data {
  Wgrad z;
  Kernel kernel = nullptr;
  Adder adder = nullptr;
  int numbers = 0;  // of a chunk
};

WgradPlan wgrad_of(const ConvolutionShape& shape, int tk) {
  WgradPlan plan;
  const int taps = static_cast<int>(shape.columns.taps);
  const int filters = static_cast<int>(shape.group_outputs);
  double least = 0.0;
  for (const Instance& instance : kInstances) {
    if (instance.s != taps || (tk != 0 && instance.tk != tk)) continue;
    if (instance.columns != 0 && instance.columns != shape.columns.outputs) continue;
    Wgrad z;
    z.images = static_cast<int>(shape.batch);
    z.filters = filters;
    z.rows = static_cast<int>(shape.rows.outputs);
    z.columns = static_cast<int>(shape.columns.outputs);
    z.taps_r = static_cast<int>(shape.rows.taps);
    z.x.channels = static_cast<int>(shape.group_inputs);
    z.x.groups = z.dy.groups = static_cast<int>(shape.groups);
    z.x.in_rows = static_cast<int>(shape.rows.inputs);
    z.x.in_columns = static_cast<int>(shape.columns.inputs);
    z.x.pad_r = static_cast<int>(shape.rows.pad);
    z.x.pad_s = static_cast<int>(shape.columns.pad);
    z.dy.channels = filters;
    z.dy.in_rows = z.rows;
    z.dy.in_columns = z.columns;
    z.tk = instance.tk;
    // Of a chunk of four pixels: products, and loads.
    const double costs = cuda::divide_up(filters, z.tk) * (z.tk * taps + 0.5 * (4.0 + z.tk));
    if (plan.data && costs >= least) continue;
    if (!fit(z, taps, instance.in_bulk)) continue;
    z.x.finish();
    z.dy.finish();
    z.by_items = Divider(z.items);
    z.by_taps_r = Divider(z.taps_r);
    z.by_channels = Divider(z.x.channels);
    z.by_rows = Divider(z.rows);
    least = costs;
    plan.data = std::make_shared<WgradPlan::Data>(
        WgradPlan::Data{z, instance.kernel, instance.adder, z.parts * z.x.groups * z.items * z.tk * taps});
  }
  return plan;
}

uint64_t workspace_bytes(const WgradPlan& plan) {
  return static_cast<uint64_t>(plan.data->z.chunks) * static_cast<uint64_t>(plan.data->numbers) * sizeof(float);
}

void run_wgrad(const WgradPlan& plan, const float* dy, const float* x, float* dw, float* workspace, int early_blocks,
               cudaStream_t stream) {
  const Wgrad& z = plan.data->z;
  const bool in_bulk =
      piece_of(x, z.x, z.x_bulk, early_blocks > 0) == kBulk && piece_of(dy, z.dy, z.dy_bulk, early_blocks > 0) == kBulk;
  launch(plan.data->kernel,
         {dim3(static_cast<unsigned>(z.chunks), static_cast<unsigned>(z.parts), static_cast<unsigned>(z.x.groups)),
          dim3(z.threads), z.shared_bytes},
         early_blocks, stream, dy, x, workspace, z, in_bulk ? kBulk : piece_of(x, z.x, false),
         in_bulk ? kBulk : piece_of(dy, z.dy, early_blocks > 0));
  const cuda::Launch adding{dim3(cuda::grid_size(plan.data->numbers, 32)), dim3(32, kShares)};
  if (early_blocks > 0) {
    launch_with(plan.data->adder, adding, {.early = true}, stream, workspace, dw, z, plan.data->numbers);
  } else {
    cuda::launch(plan.data->adder, adding, stream, workspace, dw, z, plan.data->numbers);
  }
}

uint64_t shared_bytes(const WgradPlan& plan) { return plan.data ? plan.data->z.shared_bytes : 0; }

}  // namespace gpunn::cuda_tiled::direct
