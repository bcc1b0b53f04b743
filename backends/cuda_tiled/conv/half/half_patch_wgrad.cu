// conv:half_patch: the weight gradient of 3x3 convolutions, which fetches x once for all nine taps. As a product
// (half_product.hpp) it would fetch x once for each, so that a tile of 64 filters waits for the L2 cache.
//
// A thread block has the gradients of 64 filters by nine taps and 64 channels. K runs through the output pixels, some
// rows of an image at a time, of which TMA brings a stage: dy's rows, with zeros behind each, and the patch of x that
// their windows see. Both have rows of the same pitch, as long as a patch's, so a tap is an offset in shared memory:
//
//   dw[filter, tap, channel] += sum over i of dy[i, filter] x[i + row_of_tap * pitch + column_of_tap, channel]
//
// where i counts a stage's pixels, and the zeros behind dy's rows stand against pixels of x that wrap to the next row.
// Each of three warpgroups has the taps of a row: to wgmma these are one matrix of 3 x 64 columns, whose blocks of 64
// lie one pixel apart. The swizzle depends on the address alone, so that a tile may begin at any pixel.
//
// The blocks share out all images' rows. A cluster of them adds its sums through shared memory and leaves them in
// memory, where a second kernel adds those of all clusters in their order.
#include <algorithm>
#include <cstdint>

#include "architecture.hpp"
#include "conv/convolution.hpp"
#include "conv/half/half_patch.cuh"
#include "conv/half/half_patch.hpp"
#include "cuda_common/divide_up.hpp"
#include "dependent_launch.cuh"
#include "divider.cuh"
#include "gemm/wgmma/cluster.cuh"
#include "gemm/wgmma/wgmma.cuh"
#include "half/half_copies.cuh"
#include "half/half_instructions.cuh"
#include "half/half_store.cuh"
#include "launch.hpp"
#include "quads.cuh"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {
namespace {

using backends::ConvolutionAxis;
using backends::Refusal;
using backends::require;
using cuda::divide_up;

constexpr int kPatchWidth = 64;                              // filters and channels of a block
constexpr int kPatchSums = kPatchTaps * kPatchWidth;         // of a filter, those of a warpgroup
constexpr int kPatchThreads = kPatchTaps * kWarpgroup + 32;  // one more warp fills the ring
constexpr int kFilterSums = kPatchTaps * kPatchSums;         // of a filter
constexpr int kPatchTile = kPatchWidth * kFilterSums;        // sums of a block
constexpr int kPatchCluster = 4;
// In shared memory, so that eight filters' pairs of sums lie in different banks.
constexpr int kFilterPitch = kFilterSums + 8;
constexpr int kSumsBytes = kPatchWidth * kFilterPitch * int{sizeof(float)};
constexpr int kEnoughPatchStages = 4;

struct PatchWgrad {
  CUtensorMap dy{}, x{};
  float* parts = nullptr;  // [cluster][tile][filter][tap][channel]
  void* dw = nullptr;
  int channel_tiles = 1, tiles = 1;
  int row_pad = 0, column_pad = 0, row_dilation = 1, column_dilation = 1;
  int rows = 0;   // of dy, a stage
  int pitch = 0;  // pixels of a row in shared memory
  int steps = 0;  // of a stage
  int stages = 0;
  int units = 0;  // stages' contents: pieces of `rows` rows of all images
  Divider image_units = {};
  int splits = kPatchCluster;  // blocks of a tile, whole clusters
  int units_of_split = 0;

  // In bytes, of a stage. TMA brings the first part of dy and of x; behind them are zeros.
  __host__ __device__ int dy_brought() const { return rows * pitch * kLineBytes; }
  __host__ __device__ int dy_bytes() const { return steps * kPatchStep * kLineBytes; }
  __host__ __device__ int x_rows() const { return rows + (kPatchTaps - 1) * row_dilation; }
  __host__ __device__ int x_brought() const { return x_rows() * pitch * kLineBytes; }
  __host__ __device__ int x_bytes() const {
    const int read = steps * kPatchStep + (kPatchTaps - 1) * (row_dilation * pitch + column_dilation);
    return (read + 7) / 8 * 8 * kLineBytes;
  }
  __host__ __device__ int stage_bytes() const { return dy_bytes() + x_bytes(); }
  __host__ __device__ int brought() const { return dy_brought() + x_brought(); }
  // The sums take the place of the stages, which want to begin at a multiple of 1024 bytes.
  int shared_bytes() const { return std::max(stages * stage_bytes(), kSumsBytes) + 1024; }

  uint64_t parts_bytes() const {
    return sizeof(float) * static_cast<uint64_t>(splits / kPatchCluster) * static_cast<uint64_t>(tiles) * kPatchTile;
  }
};

__device__ __forceinline__ void clear_shared(uint8_t* from, int bytes) {
  for (int i = static_cast<int>(threadIdx.x) * 16; i < bytes; i += kPatchThreads * 16) {
    *reinterpret_cast<uint4*>(from + i) = make_uint4(0, 0, 0, 0);
  }
}

// One thread.
__device__ __forceinline__ void fill_patches(const PatchWgrad& plan, uint8_t* stages, PatchBarriers& barriers,
                                             int first, int last) {
  const int filter = static_cast<int>(blockIdx.x) / plan.channel_tiles * kPatchWidth;
  const int channel = static_cast<int>(blockIdx.x) % plan.channel_tiles * kPatchWidth;
  PatchTurn turn(plan.stages);
  for (int unit = first; unit < last; ++unit) {
    const Divider::Result at = plan.image_units(unit);
    const int row = at.rest * plan.rows;
    uint8_t* const to = stages + turn.stage * plan.stage_bytes();
    uint64_t* const full = &barriers.full[turn.stage];
    barrier_wait(&barriers.empty[turn.stage], turn.phase ^ 1U);
    barrier_expect(full, static_cast<uint32_t>(plan.brought()));
    copy_box_of_image(to, &plan.dy, full, filter, {.row = row, .column = 0, .image = at.quotient});
    copy_box_of_image(to + plan.dy_bytes(), &plan.x, full, channel,
                      {.row = row - plan.row_pad, .column = -plan.column_pad, .image = at.quotient});
    turn.advance();
  }
}

// Adds to d a warpgroup's sums over the units. Its matrix of x begins `offset` bytes behind the patch.
template <bool kBf16>
__device__ __forceinline__ void sum_patches(const PatchWgrad& plan, const uint8_t* stages, PatchBarriers& barriers,
                                            int units, int offset, float (&d)[kPatchSums / 2]) {
  const bool reports = threadIdx.x % 32 == 0;
  PatchTurn turn(plan.stages);
  int previous = 0;
  for (int unit = 0; unit < units; ++unit) {
    const uint8_t* const dy = stages + turn.stage * plan.stage_bytes();
    uint64_t a = tile_descriptor(dy, 0);
    uint64_t b =
        tile_descriptor(dy + plan.dy_bytes() + offset, static_cast<uint32_t>(plan.column_dilation * kLineBytes));
    barrier_wait(&barriers.full[turn.stage], turn.phase);
    warpgroup_arrive();
    for (int step = 0; step < plan.steps; ++step) {
      if constexpr (kBf16)
        wgmma_bf16<1, 1>(d, a, b, true);
      else
        wgmma_f16<1, 1>(d, a, b, true);
      a += kPatchStep * kLineBytes / 16;
      b += kPatchStep * kLineBytes / 16;
    }
    warpgroup_commit();
    warpgroup_wait<1>();  // the previous stage has been read
    if (unit > 0 && reports) barrier_arrive(&barriers.empty[previous]);
    previous = turn.stage;
    turn.advance();
  }
  warpgroup_wait<0>();
}

// All threads of the three warpgroups; barrier 0 is that of the block.
__device__ __forceinline__ void warpgroups_sync() {
  asm volatile("bar.sync 1, %0;" ::"n"(kPatchTaps * kWarpgroup) : "memory");
}

// Adds the sums of the cluster's blocks, of which each block leaves its share of the filters in memory. The threads of
// the three warpgroups.
__device__ __forceinline__ void leave_sums(const PatchWgrad& plan, float* sums, const float (&d)[kPatchSums / 2]) {
  constexpr int kThreads = kPatchTaps * kWarpgroup, kFilters = kPatchWidth / kPatchCluster, kQuads = kFilterSums / 4;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  warpgroups_sync();  // all have read the stages
  float* const to = sums + (thread % kWarpgroup / 32 * 16 + lane / 4) * kFilterPitch +
                    thread / kWarpgroup * kPatchSums + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < kPatchSums / 8; ++j) {
    *reinterpret_cast<float2*>(to + j * 8) = make_float2(d[j * 4], d[j * 4 + 1]);
    *reinterpret_cast<float2*>(to + 8 * kFilterPitch + j * 8) = make_float2(d[j * 4 + 2], d[j * 4 + 3]);
  }
  cluster_sync();
  const int first = static_cast<int>(cluster_rank()) * kFilters;
  const int64_t cluster = blockIdx.y / kPatchCluster;
  float* const part = plan.parts + (cluster * plan.tiles + static_cast<int>(blockIdx.x)) * kPatchTile;
  for (int i = thread; i < kFilters * kQuads; i += kThreads) {
    const int filter = first + i / kQuads, quad = i % kQuads * 4;
    float4 sum = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
#pragma unroll
    for (uint32_t rank = 0; rank < kPatchCluster; ++rank) {
      sum = sum + load_shared_of(sums + filter * kFilterPitch + quad, rank);
    }
    *reinterpret_cast<float4*>(part + filter * kFilterSums + quad) = sum;
  }
  cluster_sync();  // others read this block's memory until here
}

template <bool kBf16>
__global__ void __launch_bounds__(kPatchThreads, 1) patch_wgrad(const __grid_constant__ PatchWgrad plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ uint8_t patch_shared[];
  __shared__ PatchBarriers barriers;
  uint8_t* const stages = patch_shared + (1024 - shared_address(patch_shared) % 1024) % 1024;
  if (threadIdx.x == 0) {
    prefetch_tensor_map(&plan.dy);
    prefetch_tensor_map(&plan.x);
    for (int i = 0; i < plan.stages; ++i) {
      barrier_init(&barriers.full[i], 1);
      barrier_init(&barriers.empty[i], kPatchTaps * kWarpgroup / 32);
    }
    fence_barrier_init();
  }
  for (int i = 0; i < plan.stages; ++i) {
    uint8_t* const dy = stages + i * plan.stage_bytes();
    uint8_t* const x = dy + plan.dy_bytes();
    clear_shared(dy + plan.dy_brought(), plan.dy_bytes() - plan.dy_brought());
    clear_shared(x + plan.x_brought(), plan.x_bytes() - plan.x_brought());
  }
  fence_shared();
  __syncthreads();
  let_next_kernel_start();
  wait_for_kernel_before();

  const int first = static_cast<int>(blockIdx.y) * plan.units_of_split;
  const int last = min(first + plan.units_of_split, plan.units);
  const int warpgroup = warpgroup_index();
  if (warpgroup == kPatchTaps) {
    if (threadIdx.x == kPatchTaps * kWarpgroup) fill_patches(plan, stages, barriers, first, last);
    return;
  }
  float d[kPatchSums / 2] = {};
  sum_patches<kBf16>(plan, stages, barriers, last - first, warpgroup * plan.row_dilation * plan.pitch * kLineBytes, d);
  leave_sums(plan, reinterpret_cast<float*>(stages), d);
#endif
}

// A thread four channels of a tap of a filter.
template <bool kBf16>
__global__ void add_patch_parts(PatchWgrad plan, Divider channel_quads, Divider taps, int64_t count) {
  let_next_kernel_start();
  wait_for_kernel_before();
  const int64_t i = cuda::thread_index();
  if (i >= count) return;
  const Divider::Result quad = channel_quads(static_cast<int>(i));
  const Divider::Result tap = taps(quad.quotient);
  const int filter = tap.quotient, channel = quad.rest * 4;
  const int tile = filter / kPatchWidth * plan.channel_tiles + channel / kPatchWidth;
  const float* part = plan.parts + int64_t{tile} * kPatchTile + filter % kPatchWidth * kFilterSums +
                      tap.rest * kPatchWidth + channel % kPatchWidth;
  const int64_t pitch = int64_t{plan.tiles} * kPatchTile;
  float4 sum = *reinterpret_cast<const float4*>(part);
#pragma unroll 8
  for (int cluster = 1; cluster < plan.splits / kPatchCluster; ++cluster) {
    sum = sum + *reinterpret_cast<const float4*>(part + cluster * pitch);
  }
  reinterpret_cast<uint2*>(plan.dw)[i] = make_uint2(half_pair<kBf16>(sum.x, sum.y), half_pair<kBf16>(sum.z, sum.w));
}

// Clock cycles of a multiprocessor, as measured on an H100; only their proportions count.
constexpr double kStepCycles = 3 * 96;    // the tensor cores'
constexpr double kBytesOfCycle = 17;      // that TMA brings
constexpr double kFirstBytesOfCycle = 6;  // while all blocks wait for their first stage
constexpr double kStageCycles = 200;
constexpr double kBlockCycles = 6000;  // to add the sums

double stage_cycles(const PatchWgrad& plan) {
  // With two stages a block waits for each: 3x3, 64 channels, 56x56 takes 68 us, with three 53.
  const double waits = plan.stages >= kEnoughPatchStages ? 1.0 : plan.stages == 3 ? 1.05 : 1.4;
  return waits * (kStageCycles + std::max(plan.steps * kStepCycles, plan.brought() / kBytesOfCycle));
}

double block_cycles(const PatchWgrad& plan) { return kBlockCycles + plan.brought() / kFirstBytesOfCycle; }

// So many clusters run at a time, each block of which has a multiprocessor.
int clusters_at_a_time() {
  static const int count = [] {
    constexpr auto kKernel = patch_wgrad<true>;
    constexpr auto kShared = static_cast<unsigned>(kSumsBytes + 1024);
    allow_shared_memory(kKernel, kShared);
    const LaunchConfig config({dim3(1, kPatchCluster), dim3(kPatchThreads), kShared},
                              {.cluster = dim3(1, kPatchCluster, 1)}, nullptr);
    int found = 0;
    check(cudaOccupancyMaxActiveClusters(&found, kKernel, &config.get()), "asking how many clusters run at a time");
    return std::max(found, 1);
  }();
  return count;
}

// Into how many blocks the images of a tile are split. Returns the cycles that they take.
double choose_splits(PatchWgrad& plan) {
  const int at_a_time = clusters_at_a_time();
  double least = 0.0;
  for (int clusters = 1; clusters <= at_a_time; ++clusters) {
    const int units = divide_up(plan.units, clusters * kPatchCluster);
    const double cycles =
        divide_up(plan.tiles * clusters, at_a_time) * (units * stage_cycles(plan) + block_cycles(plan));
    if (clusters > 1 && cycles >= least) continue;
    least = cycles;
    plan.units_of_split = units;
    plan.splits = clusters * kPatchCluster;
  }
  return least;
}

// The rows of a stage, and the splits, that take least. Throws Refusal.
PatchWgrad best_plan(PatchWgrad plan, int64_t images, int64_t output_rows) {
  PatchWgrad best = plan;
  double least = 0.0;
  const int most_shared = shared_memory_of_block() - 2048;
  for (plan.rows = 1; plan.rows <= output_rows && plan.x_rows() <= kMostBox; ++plan.rows) {
    plan.steps = divide_up(plan.rows * plan.pitch, kPatchStep);
    plan.stages = std::min(kMostPatchStages, most_shared / plan.stage_bytes());
    if (plan.stages < kLeastPatchStages) break;
    const int64_t image_units = divide_up(output_rows, int64_t{plan.rows});
    plan.image_units = Divider(image_units);
    plan.units = static_cast<int>(images * image_units);
    const double cycles = choose_splits(plan);
    if (best.stages > 0 && cycles >= least) continue;
    least = cycles;
    best = plan;
  }
  require(best.stages > 0, "two stages of a row of the image don't fit into shared memory");
  return best;
}

// Throws Refusal.
PatchWgrad patch_of(const HalfConvolution& problem) {
  const backends::ConvolutionShape& shape = problem.shape;
  const ConvolutionAxis &rows = shape.rows, &columns = shape.columns;
  require(problem.pass == backends::ConvolutionPass::backward_filter, "is for weight gradients");
  require(rows.taps == kPatchTaps && columns.taps == kPatchTaps && rows.stride == 1 && columns.stride == 1,
          "is for filters of 3x3 and stride 1");
  require(shape.groups == 1 && shape.group_inputs % 8 == 0 && shape.group_outputs % 8 == 0,
          "is for channels and filters by the eight in one group");
  if (const std::string refusal = half_refusal_of_gpu(); !refusal.empty()) throw Refusal(refusal);
  const int64_t pitch = columns.outputs + (kPatchTaps - 1) * columns.dilation;
  require(pitch <= kMostBox && rows.dilation <= kMostBox, "the images are too wide");
  constexpr int64_t kMost = int64_t{1} << 30;
  PatchWgrad plan{.channel_tiles = static_cast<int>(divide_up(shape.group_inputs, int64_t{kPatchWidth})),
                  .row_pad = static_cast<int>(rows.pad),
                  .column_pad = static_cast<int>(columns.pad),
                  .row_dilation = static_cast<int>(rows.dilation),
                  .column_dilation = static_cast<int>(columns.dilation),
                  .pitch = static_cast<int>(pitch)};
  const int64_t tiles = divide_up(shape.group_outputs, int64_t{kPatchWidth}) * plan.channel_tiles;
  require(shape.batch * rows.outputs <= kMost && tiles * kPatchTile <= kMost, "a tensor is too large");
  plan.tiles = static_cast<int>(tiles);
  return best_plan(plan, shape.batch, rows.outputs);
}

std::string refuses(const HalfConvolution& problem) {
  try {
    return patch_of(problem).parts_bytes() > kMostConvolutionWorkspace ? kTooMuchWorkspace : "";
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
}

uint64_t workspace(const HalfConvolution& problem) { return patch_of(problem).parts_bytes(); }

void run(const HalfConvolution& problem, cudaStream_t stream, const OpArgs& args) {
  const backends::ConvolutionShape& shape = problem.shape;
  PatchWgrad plan = patch_of(problem);
  plan.dy = pixel_tensor_map({.data = args.in<void>(0),
                              .images = shape.batch,
                              .rows = shape.rows.outputs,
                              .columns = shape.columns.outputs,
                              .channels = shape.group_outputs},
                             plan.rows, plan.pitch);
  plan.x = pixel_tensor_map({.data = args.in<void>(1),
                             .images = shape.batch,
                             .rows = shape.rows.inputs,
                             .columns = shape.columns.inputs,
                             .channels = shape.group_inputs},
                            plan.x_rows(), plan.pitch);
  plan.parts = args.workspace<float>();
  plan.dw = args.out<void>(0);
  const bool bf16 = problem.dtype == GPUNN_BF16;
  const auto kernel = bf16 ? patch_wgrad<true> : patch_wgrad<false>;
  const auto shared_bytes = static_cast<unsigned>(plan.shared_bytes());
  allow_shared_memory(kernel, shared_bytes);
  launch_with(
      kernel,
      {dim3(static_cast<unsigned>(plan.tiles), static_cast<unsigned>(plan.splits)), dim3(kPatchThreads), shared_bytes},
      {.cluster = dim3(1, kPatchCluster, 1), .early = true}, stream, plan);
  const int64_t quads = shape.group_inputs / 4;
  const int64_t count = shape.group_outputs * kPatchTaps * kPatchTaps * quads;
  launch_with(bf16 ? add_patch_parts<true> : add_patch_parts<false>, cuda::thread_each(count), {.early = true}, stream,
              plan, Divider(quads), Divider(kPatchTaps * kPatchTaps), count);
}

}  // namespace

Variant<HalfConvolution> patch_wgrad_variant() {
  return {.name = "conv:half_patch", .refuses = refuses, .workspace_bytes = workspace, .run = run};
}

}  // namespace gpunn::cuda_tiled
