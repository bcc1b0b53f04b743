// conv:tf32:1 to 4, forward and data gradient (wgmma_fprop.hpp): implicit GEMM (Chetlur et al., 2014) in TF32 on
// Hopper's tensor cores.
//
// A thread block computes a tile of pixels by filters. wgmma reads TF32 from shared memory only if the contraction is
// contiguous, which the channels of NCHW are not. From registers it takes any layout. So the pixels' operand is loaded
// to registers from a patch: the tile's input pixels with their halo, 8 channels at a time. The patch serves all taps,
// while an im2col tile would be copied once for each. The filters are packed and rounded in advance, in the order in
// which stages read them: one bulk copy brings a stage's filters. One warpgroup copies, up to four stages ahead, and
// two multiply (warp specialisation: Bauer, Cook and Khailany, 2011). Planes are padded so that the loads of a warp lie
// in 32 banks.
//
// H200, 3x3, batch 512, 256 channels of 8x8, forward: 0.131 ms, 294 TFLOP/s, 1.29 times cuDNN, with copies of 16 bytes
// and x truncated by the tensor cores instead of rounded. Stride 2, 64 to 128 channels of 32x32: 0.145 ms with rows
// copied whole and every second word read, 0.292 ms with words copied separately.
#pragma once

#include <cstdint>

#include "conv/wgmma/instructions.cuh"
#include "conv/wgmma/wgmma_convolution.hpp"
#include "cuda_common/divide_up.hpp"
#include "dependent_launch.cuh"

namespace gpunn::cuda_tiled::tensor {

struct FpropArguments {
  const float* x;
  const float* packed;
  const float* bias;  // or nullptr
  float* y;           // or the partial sums
  bool relu;
};

inline constexpr int kMultipliers = 256;  // threads of the two warpgroups that multiply; the others copy

// A block that has a multiprocessor for itself copies with a warpgroup, whose registers go to those that multiply.
constexpr int fprop_threads(int blocks) { return kMultipliers + (blocks == 1 ? 128 : 32); }

// The position and the number of output `index` of a phase: see FpropPhase::interleaved.
struct OutputPixel {
  int image, row, column;
};

__device__ __forceinline__ int interleave(int index) {
  return (index & ~31) | (index & 3) | (index & 4) << 2 | (index & 24) >> 1;
}

__device__ __forceinline__ OutputPixel output_pixel(const FpropPhase& phase, int index) {
  const int row = index / phase.columns;
  const int image = row / phase.rows;
  return {image, row - image * phase.rows, index - row * phase.columns};
}

__device__ __forceinline__ int virtual_row(const FpropPlan& plan, const FpropPhase& phase, const OutputPixel& pixel) {
  return pixel.image * phase.virtual_rows + pixel.row * plan.row_stride;
}

#ifdef GPUNN_CONV_TENSOR_CORES

// A copy of a channel's patch: its word there and its place in the first channel of x, negative where it is padding.
struct PatchUnit {
  int word, from;
};

__device__ __forceinline__ PatchUnit patch_unit(const FpropPlan& plan, const FpropPhase& phase, int first_row,
                                                int unit) {
  const int units_of_row = phase.vector != 0 ? plan.input_columns / 4 : phase.pitch;
  const int patch_row = unit / units_of_row;
  const int place = unit - patch_row * units_of_row;
  const int image = (first_row + patch_row) / phase.virtual_rows;
  const int row = first_row + patch_row - image * phase.virtual_rows;
  const int input_row = row * plan.input_row_step - phase.top;
  bool valid = image < plan.batch && input_row >= 0 && input_row < plan.input_rows;
  int input_column = place * 4;
  if (phase.vector == 0) {
    const int column = plan.column_stride == 1 ? place : place < phase.half ? 2 * place : 2 * (place - phase.half) + 1;
    input_column = column * plan.input_column_step - phase.left;
    valid = valid && column < phase.virtual_columns && input_column >= 0 && input_column < plan.input_columns;
  }
  const int from = (image * plan.inputs * plan.input_rows + input_row) * plan.input_columns + input_column;
  return {patch_row * phase.pitch + phase.lead + (phase.vector != 0 ? place * 4 : place), valid ? from : -1};
}

// The pixel of one of a thread's rows of the product, of which `first` is the first.
__device__ __forceinline__ int pixel_of(const FpropPhase& phase, int first, int tile, int half) {
  const int index = first + tile * 64 + half * 8;
  return phase.interleaved ? interleave(index) : index;
}

// Stores a thread's sums, of which the first is of the tile's pixel `first_of_lane`: to y with bias and ReLU, or as a
// part of a sum that blocks share.
template <int kTiles, int kFilters>
__device__ __forceinline__ void store_pixels(const FpropPlan& plan, const FpropPhase& phase,
                                             const FpropArguments& arguments, int first_pixel, int pixels,
                                             int filter_tile, int split, int first_of_lane,
                                             const float (&sum)[kTiles][kFilters / 2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float* y = arguments.y + split * plan.output_size();
  const int64_t plane = int64_t{plan.output_rows} * plan.output_columns;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int index = pixel_of(phase, first_pixel + first_of_lane, tile, half);
      if (index >= pixels) continue;
      const OutputPixel at = output_pixel(phase, index);
      const int first_filter = filter_tile * kFilters + lane % 4 * 2;
      float* to = y + (static_cast<int64_t>(at.image) * plan.outputs + first_filter) * plane +
                  (phase.first_row + at.row * plan.row_step) * plan.output_columns + phase.first_column +
                  at.column * plan.column_step;
#pragma unroll
      for (int i = 0; i < kFilters / 8; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int filter = first_filter + i * 8 + j;
          if (filter >= plan.outputs) continue;
          float value = sum[tile][i * 4 + half * 2 + j];
          if (plan.splits == 1) {
            if (arguments.bias != nullptr) value += arguments.bias[filter];
            if (arguments.relu) value = value < 0.0f ? 0.0f : value;
          }
          to[(i * 8 + j) * plane] = value;
        }
      }
    }
  }
}

#endif

// Blocks of the narrowest tile share a multiprocessor.
constexpr int blocks_of(const FpropTile& tile) { return tile.pixels * tile.filters <= 128 * 64 ? 2 : 1; }

template <int kTile, int kSteps>  // of kFpropTiles; products of 8 channels of a stage
__global__ void __launch_bounds__(fprop_threads(blocks_of(kFpropTiles[kTile])), blocks_of(kFpropTiles[kTile]))
    fprop_kernel(const __grid_constant__ FpropPlan plan, const __grid_constant__ FpropArguments arguments) {
#ifdef GPUNN_CONV_TENSOR_CORES
  let_next_kernel_start();
  constexpr FpropTile kShape = kFpropTiles[kTile];
  constexpr int kPixels = kShape.pixels, kTiles = kPixels / 128, kFilters = kShape.filters;
  constexpr int kBlocks = blocks_of(kShape);
  constexpr int kFilterWords = kSteps * 8 * kFilters;
  constexpr int kBuffers = kSteps % 3 == 0 && kBlocks == 1 ? 3 : 2;
  constexpr int kThreads = fprop_threads(kBlocks);
  constexpr int kCopiers = kThreads - kMultipliers;
  extern __shared__ __align__(128) float shared[];

  const int filter_tiles = cuda::divide_up(plan.outputs, kFilters);
  const int filter_tile = static_cast<int>(blockIdx.x) % filter_tiles;
  const int rest = static_cast<int>(blockIdx.x) / filter_tiles;
  // Phases of the same pixels write the same sectors: side by side where the output is larger than the cache. Else the
  // phase with most taps comes first, for an even end.
  const int tiles = static_cast<int>(gridDim.x) / filter_tiles / plan.phases;
  const bool side_by_side = plan.output_size() > (int64_t{24} << 20);
  const FpropPhase& phase = plan.phase[side_by_side ? rest % plan.phases : rest / tiles];
  const int pixels = plan.batch * phase.rows * phase.columns;
  const int first_pixel = (side_by_side ? rest / plan.phases : rest % tiles) * kPixels;
  if (first_pixel >= pixels) return;
  const int first_row = virtual_row(plan, phase, output_pixel(phase, first_pixel));

  float* filters = shared;
  float* patches = filters + plan.stages * kFilterWords;
  PatchUnit* table = reinterpret_cast<PatchUnit*>(patches + plan.stages * plan.patch);
  const uint32_t full = shared_address(table + phase.units);
  const uint32_t empty = full + static_cast<uint32_t>(plan.stages) * 8;

  const int split = static_cast<int>(blockIdx.y);
  const int first_chunk = static_cast<int>(int64_t{phase.chunks} * split / plan.splits);
  const int chunks = static_cast<int>(int64_t{phase.chunks} * (split + 1) / plan.splits) - first_chunk;

  if (phase.padded != 0) {
    for (int i = static_cast<int>(threadIdx.x); i < plan.stages * plan.patch / 4; i += kThreads) {
      reinterpret_cast<float4*>(patches)[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
  }
  for (int i = static_cast<int>(threadIdx.x); i < phase.units; i += kThreads) {
    table[i] = patch_unit(plan, phase, first_row, i);
  }
  if (threadIdx.x == 0) {
    for (int i = 0; i < plan.stages; ++i) {
      barrier_init(full + static_cast<uint32_t>(i) * 8, kCopiers + 1);
      barrier_init(empty + static_cast<uint32_t>(i) * 8, 2);
    }
    fence_barrier_init();
  }
  __syncthreads();

  wait_for_kernel_before();
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (warpgroup == kMultipliers / 128) {
    if constexpr (kBlocks == 1) give_up_registers<56>();
    const int copier = static_cast<int>(threadIdx.x) - kMultipliers;
    const int channel_size = plan.input_rows * plan.input_columns;
    const float* packed = arguments.packed + phase.packed +
                          (static_cast<int64_t>(filter_tile) * phase.chunks + first_chunk) * kFilterWords;
    int stage = 0;
    uint32_t parity = 1;
    for (int i = 0; i < chunks; ++i) {
      const uint32_t stage_full = full + static_cast<uint32_t>(stage) * 8;
      barrier_wait(empty + static_cast<uint32_t>(stage) * 8, parity);
      if (copier == 0) {
        barrier_expect(stage_full, kFilterWords * 4);
        copy_bulk(shared_address(filters + stage * kFilterWords), packed + static_cast<int64_t>(i) * kFilterWords,
                  kFilterWords * 4, stage_full);
      }
      const int first_channel = (first_chunk + i) / phase.tap_groups * phase.stage_channels;
      const float* x = arguments.x + static_cast<int64_t>(first_channel) * channel_size;
      const uint32_t patch = shared_address(patches + stage * plan.patch);
      const int channels_left = plan.inputs - first_channel;
      if (phase.vector != 0) {
        for (int i = copier % 32; i < phase.units; i += 32) {
          const PatchUnit unit = table[i];
          if (unit.from < 0) continue;
          const float* from = x + unit.from;
          const uint32_t to = patch + static_cast<uint32_t>(unit.word) * 4;
#pragma unroll 2
          for (int channel = copier / 32; channel < phase.stage_channels; channel += kCopiers / 32) {
            const bool valid = channel < channels_left;
            copy_vector(to + static_cast<uint32_t>(channel * phase.plane) * 4,
                        valid ? from + static_cast<int64_t>(channel) * channel_size : arguments.x, valid);
          }
        }
      } else {
        // Through registers: many words in flight, where a cp.async of a word holds its address registers for long.
        constexpr int kInFlight = 16;
        for (int i = copier; i < phase.units; i += kCopiers) {
          const PatchUnit unit = table[i];
          if (unit.from < 0) continue;
          const float* from = x + unit.from;
          float* to = patches + stage * plan.patch + unit.word;
          for (int channel = 0; channel < phase.stage_channels; channel += kInFlight) {
            float value[kInFlight];
#pragma unroll
            for (int j = 0; j < kInFlight; ++j) {
              const bool valid = channel + j < min(channels_left, phase.stage_channels);
              value[j] = valid ? __ldg(from) : 0.0f;
              from += channel_size;
            }
#pragma unroll
            for (int j = 0; j < kInFlight; ++j) {
              if (channel + j < phase.stage_channels) to[(channel + j) * phase.plane] = value[j];
            }
          }
        }
      }
      if (phase.vector != 0) {
        barrier_arrive_after_copies(stage_full);
      } else {
        barrier_arrive(stage_full);
      }
      if (++stage == plan.stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  } else {
    if constexpr (kBlocks == 1) take_registers<224>();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const int first_of_lane = warpgroup * kTiles * 64 + warp * 16 + lane / 4;

    // Of each of this lane's rows of the product the place of its pixel in the patch, at channel lane % 4.
    uint32_t place[kTiles][2];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int index = pixel_of(phase, first_pixel + first_of_lane, tile, half);
        const OutputPixel pixel = output_pixel(phase, min(index, pixels - 1));
        const int row = virtual_row(plan, phase, pixel) - first_row;
        place[tile][half] = static_cast<uint32_t>(row * phase.pitch + pixel.column * phase.column_scale + phase.shift +
                                                  lane % 4 * phase.plane) *
                            4;
      }
    }

    float sum[kTiles][kFilters / 2];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < kFilters / 2; ++i) sum[tile][i] = 0.0f;
    }
    uint32_t pixel[kBuffers][kTiles][4];

    // The operand of pixels of a step. The tensor cores cut x to TF32; only the filters are rounded.
    const uint32_t patch_address = shared_address(patches);
    const auto load = [&](uint32_t(&to)[kTiles][4], int stage, int group, int step) {
      const uint32_t from =
          patch_address + static_cast<uint32_t>(stage * plan.patch + phase.step_offset[group * kSteps + step]) * 4;
      const uint32_t high = from + static_cast<uint32_t>(phase.plane) * 16;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        to[tile][0] = load_word(from + place[tile][0]);
        to[tile][1] = load_word(from + place[tile][1]);
        to[tile][2] = load_word(high + place[tile][0]);
        to[tile][3] = load_word(high + place[tile][1]);
      }
    };

    int stage = 0;
    uint32_t parity = 0;
    const uint32_t filter_address = shared_address(filters);
    int group = first_chunk % phase.tap_groups;
    if (chunks > 0) {
      barrier_wait(full, 0);
      load(pixel[0], 0, group, 0);
    }
    for (int i = 0; i < chunks; ++i) {
      const int previous = stage == 0 ? plan.stages - 1 : stage - 1;
      const int next = stage + 1 == plan.stages ? 0 : stage + 1;
      const uint32_t next_parity = next == 0 ? parity ^ 1 : parity;
      const int next_group = group + 1 == phase.tap_groups ? 0 : group + 1;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const uint64_t filter = operand_descriptor(
            filter_address + static_cast<uint32_t>(stage * kFilterWords + step * 8 * kFilters) * 4, 128, 256);
        warpgroup_arrive();
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) wgmma_tf32(sum[tile], pixel[step % kBuffers][tile], filter, true);
        warpgroup_commit();
        if (step + 1 == kSteps && kSteps % kBuffers != 0) {
          warpgroup_wait<0>();  // the next step's operand goes where this one's is
        } else {
          warpgroup_wait<1>();
        }
        if (step == 0 && i > 0 && threadIdx.x % 128 == 0) barrier_arrive(empty + static_cast<uint32_t>(previous) * 8);
        if (step + 1 < kSteps) {
          load(pixel[(step + 1) % kBuffers], stage, group, step + 1);
        } else if (i + 1 < chunks) {
          barrier_wait(full + static_cast<uint32_t>(next) * 8, next_parity);
          load(pixel[0], next, next_group, 0);
        }
      }
      stage = next;
      parity = next_parity;
      group = next_group;
    }
    warpgroup_wait<0>();

    store_pixels<kTiles, kFilters>(plan, phase, arguments, first_pixel, pixels, filter_tile, split, first_of_lane, sum);
  }
#endif
}

// The filters in the order in which the blocks read them: by phase, tile of filters, chunk and step a matrix of 8
// channels, as bricks of 8 filters by 4 channels, rounded to TF32. Channels and filters that there are not are zeros.
template <int kFilters, int kSteps>
__global__ void pack_filters_kernel(const __grid_constant__ FpropPlan plan, const float* __restrict__ w,
                                    float* __restrict__ packed) {
#ifdef GPUNN_CONV_TENSOR_CORES
  let_next_kernel_start();
  const FpropPhase& phase = plan.phase[blockIdx.y];
  const int filter_tiles = cuda::divide_up(plan.outputs, kFilters);
  const int64_t size = int64_t{filter_tiles} * phase.chunks * kSteps * kFilters * 8;
  const int64_t index = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (index >= size) return;
  int64_t rest = index;
  const int low_channel = static_cast<int>(rest % 4);
  rest /= 4;
  const int low_filter = static_cast<int>(rest % 8);
  rest /= 8;
  const int high_channel = static_cast<int>(rest % 2);
  rest /= 2;
  const int high_filter = static_cast<int>(rest % (kFilters / 8));
  rest /= kFilters / 8;
  const int step = static_cast<int>(rest % kSteps);
  rest /= kSteps;
  const int chunk = static_cast<int>(rest % phase.chunks);
  const int tile = static_cast<int>(rest / phase.chunks);

  const int taps = min(phase.taps, kSteps);
  const int tap = phase.tap[chunk % phase.tap_groups * kSteps + step % taps];
  const int channel =
      chunk / phase.tap_groups * phase.stage_channels + step / taps * 8 + high_channel * 4 + low_channel;
  const int filter = tile * kFilters + high_filter * 8 + low_filter;
  float value = 0.0f;
  if (channel < plan.inputs && filter < plan.outputs) {
    const int64_t row =
        plan.backward ? int64_t{channel} * plan.outputs + filter : int64_t{filter} * plan.inputs + channel;
    value = w[row * plan.filter_taps + tap];
  }
  packed[phase.packed + index] = __uint_as_float(round_tf32(value));
#endif
}

}  // namespace gpunn::cuda_tiled::tensor
