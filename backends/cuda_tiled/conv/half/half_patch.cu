// conv:half_patch: 3x3 convolutions of stride 1 of at most 64 channels, and their data gradients, which are
// convolutions of dy. As a product (half_product.hpp) one would fetch x once for each of the nine taps, and a tile of
// 64 filters waits for that.
//
// A thread block keeps the weights of 64 filters in shared memory and walks over the images. Of an image the output's
// pixels are counted with gaps behind each row, as many as a row of x has columns more that its windows see. A tile has
// kPixels such pixels, and TMA brings the rows of x that they see, its patch, with the same pitch. So a tap is an
// offset in shared memory, and the transposed product
//
//   y[filter, i] = sum over tap, channel of w[filter, tap, channel] x[i + row_of_tap * pitch + column_of_tap, channel]
//
// has 64 rows and kPixels columns, of which those in the gaps are left out. The swizzle of 128 bytes depends on the
// address alone, so that wgmma may begin at any pixel.
//
// Two warpgroups take turns with tiles: while one stores, the other multiplies.
#include <cstdint>

#include "architecture.hpp"
#include "conv/half/half_patch.cuh"
#include "conv/half/half_patch.hpp"
#include "conv/half/half_patch_plan.hpp"
#include "conv/half/half_patch_store.cuh"
#include "dependent_launch.cuh"
#include "gemm/wgmma/cluster.cuh"
#include "gemm/wgmma/wgmma.cuh"
#include "half/consumer_turns.cuh"
#include "half/half_copies.cuh"
#include "half/half_instructions.cuh"
#include "launch.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {
namespace {

using backends::Refusal;

constexpr int kPatchThreads = (kPatchConsumers + 1) * kWarpgroup;  // a thread of the last warpgroup fills the ring
constexpr uint32_t kPatchProducerRegisters = 40, kPatchConsumerRegisters = 232;

// The filters of a block, and the tiles that it walks over.
struct PatchWork {
  int filter;
  int first, step;
  __device__ __forceinline__ explicit PatchWork(const PatchConvolution& plan)
      : filter(static_cast<int>(blockIdx.x) % plan.filter_tiles * kPatchFilters),
        first(static_cast<int>(blockIdx.x) / plan.filter_tiles),
        step(static_cast<int>(gridDim.x) / plan.filter_tiles) {}
};

// One thread. `kGradient`: x is dy, and the filters are the channels of w, whose taps come in reverse.
template <bool kGradient>
__device__ __forceinline__ void fill_patches(const PatchConvolution& plan, uint8_t* weights, uint64_t* weights_full,
                                             uint8_t* stages, PatchBarriers& barriers) {
  const PatchWork work(plan);
  barrier_expect(weights_full, kPatchWeightBytes);
  for (int tap = 0; tap < kAllPatchTaps; ++tap) {
    uint8_t* const to = weights + tap * kPatchTapBytes;
    if constexpr (kGradient) {
      copy_box_of_tap(to, &plan.w, weights_full, work.filter, kAllPatchTaps - 1 - tap, 0);
    } else {
      copy_box_of_tap(to, &plan.w, weights_full, 0, tap, work.filter);
    }
  }
  PatchTurn turn(plan.stages);
  for (int unit = work.first; unit < plan.units; unit += work.step) {
    const PatchTile tile(plan, unit);
    uint64_t* const full = &barriers.full[turn.stage];
    barrier_wait(&barriers.empty[turn.stage], turn.phase ^ 1U);
    barrier_expect(full, static_cast<uint32_t>(plan.brought()));
    copy_box_of_image(stages + turn.stage * plan.stage_bytes(), &plan.x, full, 0,
                      {.row = tile.row - plan.row_pad, .column = -plan.column_pad, .image = tile.image});
    turn.advance();
  }
}

// Adds to d the sums of a tile whose first pixel is at `x`. One warpgroup.
template <bool kBf16, bool kGradient, int kPixels>
__device__ __forceinline__ void multiply_patch(const PatchConvolution& plan, const uint8_t* weights, const uint8_t* x,
                                               float (&d)[kPixels / 2]) {
  // 16 of K a step: along a line 32 bytes, across lines 16 lines.
  constexpr int kStepA = kGradient ? kPatchStep * kLineBytes : kPatchStep * int{sizeof(uint16_t)};
  constexpr int kStepB = kPatchStep * int{sizeof(uint16_t)};
  const uint64_t from_a = tile_descriptor(weights, 0), from_b = tile_descriptor(x, 0);
  int row = 0, column = 0;  // of the tap
#pragma unroll 1
  for (int tap = 0; tap < kAllPatchTaps; ++tap) {
    // A descriptor's lowest bits are the address in units of 16 bytes.
    uint64_t a = from_a + static_cast<unsigned>(tap * (kPatchTapBytes / 16));
    uint64_t b = from_b + static_cast<unsigned>((row * plan.row_pitch() + column) * (kLineBytes / 16));
    warpgroup_arrive();
#pragma unroll 1
    for (int step = 0; step < plan.channel_steps; ++step) {
      if constexpr (kBf16)
        wgmma_bf16<kGradient, 0>(d, a, b, true);
      else
        wgmma_f16<kGradient, 0>(d, a, b, true);
      a += kStepA / 16;
      b += kStepB / 16;
    }
    warpgroup_commit();
    column += plan.column_dilation;
    if (column == kPatchTaps * plan.column_dilation) {
      column = 0;
      row += plan.row_dilation;
    }
  }
}

template <bool kBf16, bool kGradient, bool kEnds, int kPixels>
__global__ void __launch_bounds__(kPatchThreads, 1) patch_convolution(const __grid_constant__ PatchConvolution plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ uint8_t patch_shared[];
  __shared__ PatchBarriers barriers;
  __shared__ uint64_t weights_full, begins[kPatchConsumers];
  uint8_t* const weights = patch_shared + (1024 - shared_address(patch_shared) % 1024) % 1024;
  uint8_t* const stages = weights + kPatchWeightBytes;
  uint8_t* const staging = stages + plan.stages * plan.stage_bytes();
  if (threadIdx.x == 0) {
    prefetch_tensor_map(&plan.w);
    prefetch_tensor_map(&plan.x);
    barrier_init(&weights_full, 1);
    for (int i = 0; i < plan.stages; ++i) {
      barrier_init(&barriers.full[i], 1);
      barrier_init(&barriers.empty[i], kWarpgroup / 32);
    }
    for (uint64_t& begin : begins) barrier_init(&begin, ConsumerTurns::kArrivals);
    fence_barrier_init();
  }
  __syncthreads();
  let_next_kernel_start();
  wait_for_kernel_before();

  const int consumer = warpgroup_index();
  if (consumer == kPatchConsumers) {
    give_up_registers<kPatchProducerRegisters>();
    if (threadIdx.x == kPatchConsumers * kWarpgroup)
      fill_patches<kGradient>(plan, weights, &weights_full, stages, barriers);
    return;
  }
  take_registers<kPatchConsumerRegisters>();
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup, warp = thread / 32;
  const PatchWork work(plan);
  ConsumerTurns turns(begins, consumer);
  PatchTurn turn(plan.stages);
  barrier_wait(&weights_full, 0);
  for (int unit = work.first, of = 0; unit < plan.units; unit += work.step, of ^= 1, turn.advance()) {
    if (of != consumer) continue;
    const PatchTile tile(plan, unit);
    float d[kPixels / 2] = {};
    turns.wait(consumer);
    barrier_wait(&barriers.full[turn.stage], turn.phase);
    multiply_patch<kBf16, kGradient, kPixels>(plan, weights,
                                              stages + turn.stage * plan.stage_bytes() + tile.column * kLineBytes, d);
    turns.hand_over(consumer, thread);
    warpgroup_wait<0>();
    if (thread % 32 == 0) barrier_arrive(&barriers.empty[turn.stage]);
    store_patch<kBf16, kGradient, kEnds, kPixels>(plan, tile, work.filter + warp * kStoredFilters, d,
                                                  staging + (consumer * (kWarpgroup / 32) + warp) * kPatchStagingBytes);
  }
#endif
}

// Throws Refusal.
PatchConvolution patch_of(const HalfConvolution& problem) {
  if (const std::string refusal = half_refusal_of_gpu(); !refusal.empty()) throw Refusal(refusal);
  return plan_patches(problem, multiprocessors(), shared_memory_of_block());
}

std::string refuses(const HalfConvolution& problem) {
  try {
    patch_of(problem);
    return "";
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
}

uint64_t workspace(const HalfConvolution&) { return 0; }

using PatchKernel = void (*)(PatchConvolution);

template <bool kBf16, bool kGradient, bool kEnds>
PatchKernel kernel_with(const PatchConvolution& plan) {
  return plan.pixels == 192 ? patch_convolution<kBf16, kGradient, kEnds, 192>
                            : patch_convolution<kBf16, kGradient, kEnds, 256>;
}
template <bool kBf16>
PatchKernel kernel_of(const PatchConvolution& plan, bool gradient) {
  if (gradient)
    return (plan.gradient.slabs == nullptr ? kernel_with<kBf16, true, false> : kernel_with<kBf16, true, true>)(plan);
  return (plan.statistics.slabs == nullptr ? kernel_with<kBf16, false, false> : kernel_with<kBf16, false, true>)(plan);
}

void run(const HalfConvolution& problem, cudaStream_t stream, const OpArgs& args) {
  run_patch_convolution(problem, half_arguments(problem, args), stream);
}

}  // namespace

void run_patch_convolution(const HalfConvolution& problem, const HalfConvolutionArgs& args, cudaStream_t stream) {
  const backends::ConvolutionShape& shape = problem.shape;
  const bool gradient = problem.pass == backends::ConvolutionPass::backward_data;
  PatchConvolution plan = patch_of(problem);
  plan.x = pixel_tensor_map({.data = args.inputs[0],
                             .images = shape.batch,
                             .rows = gradient ? shape.rows.outputs : shape.rows.inputs,
                             .columns = gradient ? shape.columns.outputs : shape.columns.inputs,
                             .channels = gradient ? shape.group_outputs : shape.group_inputs},
                            plan.patch_rows, plan.row_pitch());
  plan.w = half_tensor_map({.data = args.inputs[1],
                            .inner = shape.group_inputs,
                            .taps = kAllPatchTaps,
                            .outer = shape.group_outputs,
                            .pitch = shape.group_inputs},
                           kPatchFilters);
  plan.y = args.output;
  plan.epilogue.bias = args.bias;
  plan.residual = args.residual;
  plan.statistics = args.statistics;
  plan.gradient = args.gradient;
  const bool bf16 = problem.dtype == GPUNN_BF16;
  const PatchKernel kernel = bf16 ? kernel_of<true>(plan, gradient) : kernel_of<false>(plan, gradient);
  const auto shared_bytes = static_cast<unsigned>(plan.shared_bytes());
  allow_shared_memory(kernel, shared_bytes);
  launch_with(kernel, {dim3(static_cast<unsigned>(plan.blocks(multiprocessors()))), dim3(kPatchThreads), shared_bytes},
              {.early = true}, stream, plan);
}

HalfSlabs patch_slabs(const HalfConvolution& problem) { return patch_slabs(patch_of(problem)); }

Variant<HalfConvolution> patch_variant() {
  return {.name = "conv:half_patch", .refuses = refuses, .workspace_bytes = workspace, .run = run};
}

}  // namespace gpunn::cuda_tiled
