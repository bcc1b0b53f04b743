// conv:tf32:1 to 4, the weight gradient (wgmma_wgrad.hpp) in TF32 on Hopper's tensor cores.
//
// The contraction runs over pixels, which are contiguous in dy. So the tile of dy has the layout in shared memory that
// wgmma needs; it is copied through registers, which round it. x at each tap is loaded to registers from the patch that
// all taps share, as in wgmma_fprop_kernel.cuh. A thread block computes all nine taps of 64 channels, so that x and dy
// are read once for them. One warpgroup copies and the others multiply. Blocks divide the pixels, and their parts are
// added in order, so that results are reproducible.
//
// H200, 3x3, batch 512, 64 channels of 32x32: 0.285 ms, 136 TFLOP/s, 1.86 times cuDNN, with copies of 16 bytes and x
// truncated instead of rounded.
#pragma once

#include <cstdint>

#include "conv/fprop/wgmma_fprop_kernel.cuh"
#include "conv/wgmma/instructions.cuh"
#include "dependent_launch.cuh"

namespace gpunn::cuda_tiled::tensor {

struct WgradArguments {
  const float* dy;
  const float* x;
  float* parts;
};

#ifdef GPUNN_CONV_TENSOR_CORES

// A row of dw that a block computes.
struct WgradRow {
  int channel;        // of x
  int patch_channel;  // in the block's patch
  int tap;
};

__device__ __forceinline__ int first_channel(const WgradPlan& plan, int row_tile) {
  return plan.flat != 0 ? 0 : row_tile % plan.channel_tiles * plan.patch_channels;
}

template <int kSlots>
__device__ __forceinline__ WgradRow wgrad_row(const WgradPlan& plan, int row_tile, int row) {
  if (plan.flat != 0) {
    const int place = row_tile * kSlots * 64 + row;
    return {place / plan.taps, place / plan.taps, place % plan.taps};
  }
  const int channel = plan.several_channels != 0 ? row : row % 64;
  const int tap = plan.several_channels != 0 ? 0 : row_tile / plan.channel_tiles * kSlots + row / 64;
  return {first_channel(plan, row_tile) + channel, channel, tap};
}

// A stage's patch of x and the place of each of its pixels in it.
template <int kPixels, bool kVector>
__device__ __forceinline__ void copy_patch(const WgradPlan& plan, const float* x, int channels, int first_pixel,
                                           int thread, float* patch, int* places) {
  const FpropPlan& geometry = plan.geometry;
  const FpropPhase& phase = geometry.phase[0];
  const int first_row = virtual_row(geometry, phase, output_pixel(phase, first_pixel));
  for (int i = thread; i < kPixels; i += 128) {
    const OutputPixel pixel = output_pixel(phase, first_pixel + i);
    places[i] = (virtual_row(geometry, phase, pixel) - first_row) * phase.pitch + pixel.column * phase.column_scale +
                phase.shift;
  }
  const int channel_size = geometry.input_rows * geometry.input_columns;
  for (int i = thread % 32; i < plan.units; i += 32) {
    const PatchUnit unit = patch_unit(geometry, phase, first_row, i);
    const float* from = x + max(unit.from, 0) + static_cast<int64_t>(thread / 32) * channel_size;
    if (kVector || phase.vector != 0) {
      const uint32_t to = shared_address(patch + unit.word);
#pragma unroll 4
      for (int channel = thread / 32; channel < plan.patch_channels; channel += 4) {
        const bool valid = unit.from >= 0 && channel < channels;
        copy_vector(to + static_cast<uint32_t>(channel * plan.plane) * 4, valid ? from : x, valid);
        from += int64_t{4} * channel_size;
      }
    } else if constexpr (!kVector) {
      // Through registers: many words in flight, where a cp.async of a word holds its address registers for long.
      constexpr int kInFlight = 8;
      for (int channel = thread / 32; channel < plan.patch_channels; channel += 4 * kInFlight) {
        float value[kInFlight];
#pragma unroll
        for (int j = 0; j < kInFlight; ++j) {
          const bool valid = unit.from >= 0 && channel + 4 * j < min(channels, plan.patch_channels);
          value[j] = valid ? __ldg(from) : 0.0f;
          from += int64_t{4} * channel_size;
        }
#pragma unroll
        for (int j = 0; j < kInFlight; ++j) {
          if (channel + 4 * j < plan.patch_channels) patch[(channel + 4 * j) * plan.plane + unit.word] = value[j];
        }
      }
    }
  }
}

// Four neighbouring pixels from `pixel` on of a plane of dy, zeros past the last.
__device__ __forceinline__ float4 load_pixels(const float* dy, int pixel, int pixels, int plane, int channels) {
  const auto at = [&](int index) {
    return index < pixels ? __ldg(dy + index / plane * plane * channels + index % plane) : 0.0f;
  };
  return make_float4(at(pixel), at(pixel + 1), at(pixel + 2), at(pixel + 3));
}

// Stores a thread's sums, of which the first is of the block's row `first_of_lane`, as a part of dw.
template <int kBlockSlots, int kSlots, int kFilters>
__device__ __forceinline__ void store_part(const WgradPlan& plan, const WgradArguments& arguments, int row_tile,
                                           int filter_tile, int split, int first_of_lane,
                                           const float (&sum)[kSlots][kFilters / 2]) {
  float* part = arguments.parts + split * plan.part_size();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int filter = filter_tile * kFilters + lane % 4 * 2;
#pragma unroll
  for (int slot = 0; slot < kSlots; ++slot) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const WgradRow row = wgrad_row<kBlockSlots>(plan, row_tile, first_of_lane + slot * 64 + half * 8);
      if (row.channel >= plan.geometry.inputs || row.tap >= plan.taps) continue;
      float* to = part + (static_cast<int64_t>(row.channel) * plan.taps + row.tap) * plan.filter_pitch + filter;
#pragma unroll
      for (int i = 0; i < kFilters / 8; ++i) {
        if (filter + i * 8 >= plan.filter_pitch) continue;
        *reinterpret_cast<float2*>(to + i * 8) =
            make_float2(sum[slot][i * 4 + half * 2], sum[slot][i * 4 + half * 2 + 1]);
      }
    }
  }
}

#endif

// That multiply, beside the one that copies.
constexpr int warpgroups_of(const WgradTile& tile) { return tile.slots == 9 ? 3 : 2; }

// kVector: both x and dy are copied in vectors, which takes fewer registers.
template <int kTile, bool kVector>  // of kWgradTiles
__global__ void __launch_bounds__((warpgroups_of(kWgradTiles[kTile]) + 1) * 128, 1)
    wgrad_kernel(const __grid_constant__ WgradPlan plan, const __grid_constant__ WgradArguments arguments) {
#ifdef GPUNN_CONV_TENSOR_CORES
  let_next_kernel_start();
  constexpr WgradTile kShape = kWgradTiles[kTile];
  constexpr int kWarpgroups = warpgroups_of(kShape);
  constexpr int kBlockSlots = kShape.slots, kSlots = kBlockSlots / kWarpgroups;
  constexpr int kFilters = kShape.filters, kPixels = kShape.pixels;
  constexpr int kGradientWords = kPixels * kFilters;
  extern __shared__ __align__(128) float shared[];

  const int patch_words = plan.patch_channels * plan.plane;
  float* gradients = shared;
  float* patches = gradients + plan.stages * kGradientWords;
  int* places = reinterpret_cast<int*>(patches + plan.stages * patch_words);
  const uint32_t full = shared_address(places + plan.stages * kPixels);
  const uint32_t empty = full + static_cast<uint32_t>(plan.stages) * 8;

  const int filter_tile = static_cast<int>(blockIdx.x) % plan.filter_tiles;
  const int row_tile = static_cast<int>(blockIdx.x) / plan.filter_tiles;
  const int split = static_cast<int>(blockIdx.y);
  const int first_chunk = static_cast<int>(int64_t{plan.chunks} * split / plan.splits);
  const int chunks = static_cast<int>(int64_t{plan.chunks} * (split + 1) / plan.splits) - first_chunk;

  if (plan.geometry.phase[0].padded != 0) {
    for (int i = static_cast<int>(threadIdx.x); i < plan.stages * patch_words / 4; i += (kWarpgroups + 1) * 128) {
      reinterpret_cast<float4*>(patches)[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
  }
  if (threadIdx.x == 0) {
    for (int i = 0; i < plan.stages; ++i) {
      barrier_init(full + static_cast<uint32_t>(i) * 8, 256);
      barrier_init(empty + static_cast<uint32_t>(i) * 8, kWarpgroups);
    }
    fence_barrier_init();
  }
  __syncthreads();

  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (warpgroup == kWarpgroups) {
    give_up_registers<kWarpgroups == 3 ? 56 : 104>();
    const int copier = static_cast<int>(threadIdx.x) % 128;
    const int channel = first_channel(plan, row_tile);
    const int plane = plan.geometry.output_rows * plan.geometry.output_columns;
    const int pixels = plan.geometry.batch * plane;
    const float* x =
        arguments.x + static_cast<int64_t>(channel) * plan.geometry.input_rows * plan.geometry.input_columns;
    // A brick is 8 filters of 4 pixels, which 8 lanes write.
    constexpr int kGroups = 128 / (2 * kPixels);  // of 8 filters, at once
    constexpr int kLoads = kFilters / 8 / kGroups;
    const int pixel_of_thread = copier / 8 % (kPixels / 4) * 4;
    const int filter = filter_tile * kFilters + copier / (2 * kPixels) * 8 + copier % 8;
    const float* dy = arguments.dy + static_cast<int64_t>(filter) * plane;
    float4 value[kLoads];
    const auto load = [&](int pixel) {
      const float* from = dy + static_cast<int64_t>(pixel / plane) * plane * plan.geometry.outputs + pixel % plane;
#pragma unroll
      for (int j = 0; j < kLoads; ++j) {
        const bool valid = pixel < pixels && filter + j * 8 * kGroups < plan.geometry.outputs;
        value[j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (valid)
          value[j] = __ldg(reinterpret_cast<const float4*>(from + static_cast<int64_t>(j) * 8 * kGroups * plane));
      }
    };
    int stage = 0;
    uint32_t parity = 1;
    if (kVector && chunks > 0) load(first_chunk * kPixels + pixel_of_thread);
    for (int i = 0; i < chunks; ++i) {
      const uint32_t stage_full = full + static_cast<uint32_t>(stage) * 8;
      const int first_pixel = (first_chunk + i) * kPixels;
      const int pixel = first_pixel + pixel_of_thread;
      barrier_wait(empty + static_cast<uint32_t>(stage) * 8, parity);
      copy_patch<kPixels, kVector>(plan, x, plan.geometry.inputs - channel, first_pixel, copier,
                                   patches + stage * patch_words, places + stage * kPixels);
      barrier_arrive_after_copies(stage_full);
      uint4* gradient = reinterpret_cast<uint4*>(gradients + stage * kGradientWords);
      if constexpr (kVector) {
#pragma unroll
        for (int j = 0; j < kLoads; ++j) gradient[j * 128 + copier] = round_tf32(value[j]);
      } else {
        const float* from = dy;
#pragma unroll 1
        for (int j = 0; j < kLoads; ++j) {
          uint4 rounded = make_uint4(0, 0, 0, 0);
          if (filter + j * 8 * kGroups < plan.geometry.outputs) {
            rounded = round_tf32(load_pixels(from, pixel, pixels, plane, plan.geometry.outputs));
          }
          gradient[j * 128 + copier] = rounded;
          from += 8 * kGroups * plane;
        }
      }
      fence_shared();
      barrier_arrive(stage_full);
      // The next stage's dy is on its way to registers while its memory is waited for.
      if (kVector && i + 1 < chunks) load(pixel + kPixels);
      if (++stage == plan.stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  } else {
    take_registers<kWarpgroups == 3 ? 152 : 200>();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const int first_of_lane = warpgroup * kSlots * 64 + warp * 16 + lane / 4;
    int offset[kSlots][2];
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const WgradRow row = wgrad_row<kBlockSlots>(plan, row_tile, first_of_lane + slot * 64 + half * 8);
        const bool valid = row.channel < plan.geometry.inputs && row.tap < plan.taps;
        offset[slot][half] = valid ? row.patch_channel * plan.plane + plan.geometry.phase[0].step_offset[row.tap] : 0;
      }
    }
    float sum[kSlots][kFilters / 2];
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
#pragma unroll
      for (int i = 0; i < kFilters / 2; ++i) sum[slot][i] = 0.0f;
    }
    uint32_t pixel[2][kSlots][4];
    const auto load = [&](uint32_t(&to)[kSlots][4], int stage, int step) {
      const int* place = places + stage * kPixels + step * 8 + lane % 4;
      const float* low = patches + stage * patch_words + place[0];
      const float* high = patches + stage * patch_words + place[4];
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        to[slot][0] = __float_as_uint(low[offset[slot][0]]);
        to[slot][1] = __float_as_uint(low[offset[slot][1]]);
        to[slot][2] = __float_as_uint(high[offset[slot][0]]);
        to[slot][3] = __float_as_uint(high[offset[slot][1]]);
      }
    };

    constexpr int kSteps = kPixels / 8;
    int stage = 0;
    uint32_t parity = 0;
    const uint32_t gradient_address = shared_address(gradients);
    if (chunks > 0) {
      barrier_wait(full, 0);
      load(pixel[0], 0, 0);
    }
#pragma unroll 1
    for (int i = 0; i < chunks; ++i) {
      const int next = stage + 1 == plan.stages ? 0 : stage + 1;
      const uint32_t next_parity = next == 0 ? parity ^ 1 : parity;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const uint64_t gradient = operand_descriptor(
            gradient_address + static_cast<uint32_t>(stage * kGradientWords + step * 64) * 4, 128, kPixels / 4 * 128);
        warpgroup_arrive();
#pragma unroll
        for (int slot = 0; slot < kSlots; ++slot) wgmma_tf32(sum[slot], pixel[step % 2][slot], gradient, true);
        warpgroup_commit();
        warpgroup_wait<1>();
        if (step + 1 < kSteps) {
          load(pixel[(step + 1) % 2], stage, step + 1);
        } else if (i + 1 < chunks) {
          barrier_wait(full + static_cast<uint32_t>(next) * 8, next_parity);
          load(pixel[0], next, 0);
        }
      }
      warpgroup_wait<0>();
      if (threadIdx.x % 128 == 0) barrier_arrive(empty + static_cast<uint32_t>(stage) * 8);
      stage = next;
      parity = next_parity;
    }

    store_part<kBlockSlots, kSlots, kFilters>(plan, arguments, row_tile, filter_tile, split, first_of_lane, sum);
  }
#endif
}

}  // namespace gpunn::cuda_tiled::tensor
