// quantized:wgmma_256x128 and its siblings: convolution in eight bits as an implicit GEMM by wgmma, Hopper's matrix
// product of a warpgroup, u8 by u8 with exact sums in s32.
//
// A block computes a tile of pixels x filters. Two warps bring patches to shared memory (quantized_wgmma.hpp): the
// tile's pixels of x with their neighbours, 64 channels at a time. A patch serves all taps, so that x is read about
// once and not once for each tap. It has a plane for each 16 channels, with 16 bytes a pixel. ldmatrix reads rows of 16
// bytes from anywhere, so the pixels' operand comes from registers, and a tap is an offset in the patch. One thread
// brings the filters of each tap, 64 channels wide, by TMA. Two warpgroups multiply (warp specialisation: Bauer, Cook
// and Khailany, 2011).
//
// Filters are stored with the zero point 128: sum x (w - 128) = sum x w - 128 sum x. Each lane adds up the numbers of x
// that it loads, four in one instruction. So the filters need no conversion. A zero point of x is treated as in
// quantized_kernel.cuh.
#include <algorithm>
#include <cstdint>

#include "async_copy.cuh"
#include "conv/wgmma/instructions.cuh"
#include "cuda_common/launch.hpp"
#include "dependent_launch.cuh"
#include "gemm/wgmma/tensor_map.hpp"
#include "launch.hpp"
#include "quantized/quantized_patch.cuh"
#include "quantized/quantized_store.cuh"
#include "quantized/quantized_wgmma.hpp"
#include "quantized/quantized_wgmma_instructions.cuh"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {
namespace {

constexpr int kPatchChannels = 64;
constexpr int kPlanes = kPatchChannels / kChunkBytes;
constexpr int kFilterStages = 6;
constexpr int kConsumerGroups = 2;  // warpgroups
constexpr int kConsumerThreads = kConsumerGroups * 128;
constexpr int kMostPatches = 6;
constexpr int kStageAlignment = 1024;  // of filters, for the swizzle

template <QuantizedWgmmaTile tile>
struct QuantizedWgmmaTiling {
  static constexpr int kTileM = tile.pixels, kTileN = tile.filters;
  static constexpr int kThreads = kConsumerThreads;  // that store
  static constexpr int kBlocks = tile.blocks;        // that share a multiprocessor
  // A block that has a multiprocessor for itself copies with a warpgroup, whose registers go to those that multiply.
  static constexpr int kProducers = kBlocks == 1 ? 128 : 32;
  static constexpr int kAllThreads = kConsumerThreads + kProducers;
  static constexpr int kGroupTiles = kTileM / (64 * kConsumerGroups);  // of 64 pixels, of a warpgroup
  static constexpr int kFragmentsM = 1, kFragmentsN = kTileN / 8;
  static constexpr int kPitch = kTileN + kChunkBytes;
  static constexpr int kStageBytes = kTileN * kPatchChannels;
  static constexpr int kFilterBytes = kFilterStages * kStageBytes;
};

constexpr int result_bytes(const QuantizedWgmmaTile& tile) { return tile.pixels * (tile.filters + kChunkBytes); }

// A barrier of the threads that multiply.
__device__ __forceinline__ void sync_consumers() { asm volatile("bar.sync 1, %0;" ::"n"(kConsumerThreads) : "memory"); }

// sum += the four numbers.
__device__ __forceinline__ uint32_t add_four(uint32_t four, uint32_t sum) {
  uint32_t result = sum;
#if __CUDA_ARCH__ >= 610
  asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(four), "r"(0x01010101U), "r"(sum));
#endif
  return result;
}

#ifdef GPUNN_CONV_TENSOR_CORES

// Four matrices of 8 rows of 16 bytes: lane i names row i % 8 of matrix i / 8 by its address in shared memory.
__device__ __forceinline__ void load_bytes(uint32_t (&to)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

struct QuantizedBarriers {
  uint64_t patch_full[kMostPatches], patch_empty[kMostPatches];
  uint64_t filter_full[kFilterStages], filter_empty[kFilterStages];
};

// A place in a ring of buffers, and the parity of its full barrier's phase.
struct QuantizedSlot {
  int index = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void advance(int count) {
    if (++index < count) return;
    index = 0;
    parity ^= 1U;
  }
};

// Copies patches and filters, as far ahead as there is room. `producer` of T::kProducers threads.
template <class T>
__device__ __forceinline__ void produce_bytes(const QuantizedArguments& a, const QuantizedWgmmaPlan& plan,
                                              const CUtensorMap& filters, QuantizedBarriers& barriers,
                                              uint8_t* filter_ring, uint8_t* patch_ring, const int* table,
                                              int first_filter, int producer) {
  const int group = static_cast<int>(blockIdx.y);
  const int part = producer % kPlanes;
  QuantizedSlot at, filter_at;
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    barrier_wait(&barriers.patch_empty[at.index], at.parity ^ 1U);
    const uint8_t* const x = a.x + group * a.group_channels + chunk * kPatchChannels + part * kChunkBytes;
    uint8_t* const to = patch_ring + (at.index * kPlanes + part) * plan.plane;
#pragma unroll 4
    for (int pixel = producer / kPlanes; pixel < plan.patch.pixels; pixel += T::kProducers / kPlanes) {
      const int source = table[pixel];
      const uint8_t* const from = source >= 0 ? x + int64_t{source} * a.channels : a.padding;
      copy_async<kChunkBytes>(reinterpret_cast<float*>(to + pixel * kChunkBytes),
                              reinterpret_cast<const float*>(from == nullptr ? a.x : from), from != nullptr);
    }
    tensor::barrier_arrive_after_copies(shared_address(&barriers.patch_full[at.index]));
    at.advance(plan.patches);
    if (producer == 0) {
      for (int tap = 0; tap < plan.patch.taps; ++tap) {
        barrier_wait(&barriers.filter_empty[filter_at.index], filter_at.parity ^ 1U);
        uint64_t* const full = &barriers.filter_full[filter_at.index];
        barrier_expect(full, T::kStageBytes);
        copy_box(filter_ring + filter_at.index * T::kStageBytes, &filters, full,
                 tap * a.group_channels + chunk * kPatchChannels, group * a.outputs + first_filter);
        filter_at.advance(kFilterStages);
      }
    }
    __syncwarp();
  }
}

// sums += the products of a warpgroup's pixels and the filters. `place` is where in a patch the 16 bytes lie that the
// lane names to ldmatrix.
//
// The pixels' operand has two buffers of registers: one is loaded while the other is multiplied.
template <class T>
__device__ __forceinline__ void consume_bytes(const QuantizedArguments& a, const QuantizedWgmmaPlan& plan,
                                              QuantizedBarriers& barriers, const uint8_t* filter_ring,
                                              const uint8_t* patch_ring, const uint32_t (&place)[T::kGroupTiles],
                                              QuantizedSums<T> (&sums)[T::kGroupTiles]) {
  constexpr int kTiles = T::kGroupTiles, kSteps = kPatchChannels / 32, kUnits = kSteps * kTiles;
  static_assert(kUnits % 2 == 0);
  const bool first_lane = threadIdx.x % 32 == 0;
  const uint32_t first_patch = shared_address(patch_ring);
  const uint32_t patch_bytes = kPlanes * static_cast<uint32_t>(plan.plane);
  uint32_t numbers[2][4];
  uint32_t of_rows[kTiles][2] = {};

  QuantizedSlot patch_at, filter_at;
  uint32_t from = first_patch;
  barrier_wait(&barriers.patch_full[0], 0);
  load_bytes(numbers[0], from + place[0]);
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    int tap_column = 0;
    uint32_t tap_row = from;  // the patch, from the row of taps on
    for (int tap = 0; tap < plan.patch.taps; ++tap) {
      barrier_wait(&barriers.filter_full[filter_at.index], filter_at.parity);
      const uint64_t filters = byte_tile_descriptor(filter_ring + filter_at.index * T::kStageBytes);
#pragma unroll
      for (int unit = 0; unit < kUnits; ++unit) {
        const int i = unit % kTiles, step = unit / kTiles;
        uint32_t(&now)[4] = numbers[unit % 2];
        uint32_t(&next)[4] = numbers[(unit + 1) % 2];
        of_rows[i][0] = add_four(now[0], add_four(now[2], of_rows[i][0]));
        of_rows[i][1] = add_four(now[1], add_four(now[3], of_rows[i][1]));
        warpgroup_arrive();
        wgmma_bytes(sums[i], now, filters + static_cast<unsigned>(step * 32 / 16));
        warpgroup_commit();
        warpgroup_wait<1>();  // the unit before has been multiplied
        if (unit == 0 && first_lane) {
          if (chunk + tap > 0) {
            barrier_arrive(&barriers.filter_empty[(filter_at.index + kFilterStages - 1) % kFilterStages]);
          }
          // All that was loaded of the patch before has been added up.
          if (tap == 0 && chunk > 0) {
            barrier_arrive(&barriers.patch_empty[patch_at.index == 0 ? plan.patches - 1 : patch_at.index - 1]);
          }
        }
        const int next_tile = (unit + 1) % kTiles, next_step = (unit + 1) / kTiles;
        if (unit + 1 < kUnits) {
          load_bytes(next, from + place[next_tile] + static_cast<uint32_t>(next_step * 2 * plan.plane));
        } else if (tap + 1 < plan.patch.taps) {
          from += static_cast<uint32_t>(a.column_dilation * kChunkBytes);
          if (++tap_column == a.taps_in_row) {
            tap_column = 0;
            tap_row += static_cast<uint32_t>(a.row_dilation * kChunkBytes) * plan.patch.pitch.by;
            from = tap_row;
          }
          load_bytes(next, from + place[0]);
        } else if (chunk + 1 < plan.chunks) {
          patch_at.advance(plan.patches);
          barrier_wait(&barriers.patch_full[patch_at.index], patch_at.parity);
          from = first_patch + static_cast<uint32_t>(patch_at.index) * patch_bytes;
          load_bytes(next, from + place[0]);
        }
      }
      filter_at.advance(kFilterStages);
    }
  }
  warpgroup_wait<0>();

  constexpr uint32_t kFilterZero = 128;
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t all = of_rows[i][half];  // of the four lanes that have a row
      all += __shfl_xor_sync(0xFFFFFFFFU, all, 1);
      all += __shfl_xor_sync(0xFFFFFFFFU, all, 2);
      const auto excess = static_cast<int32_t>(all * kFilterZero);
#pragma unroll
      for (int j = 0; j < T::kFragmentsN; ++j) {
        sums[i][0][j][half * 2] -= excess;
        sums[i][0][j][half * 2 + 1] -= excess;
      }
    }
  }
}

#endif

template <class T>
__global__ void __launch_bounds__(T::kAllThreads, T::kBlocks)
    quantized_wgmma(const __grid_constant__ QuantizedArguments a, const __grid_constant__ QuantizedWgmmaPlan plan,
                    const __grid_constant__ CUtensorMap filters) {
#ifdef GPUNN_CONV_TENSOR_CORES
  extern __shared__ uint8_t shared[];
  __shared__ QuantizedBarriers barriers;
  __shared__ QuantizedColumns<T> columns;
  __shared__ int any_strange;
  const uint32_t misaligned = shared_address(shared) % kStageAlignment;
  uint8_t* const filter_ring = shared + (misaligned == 0 ? 0 : kStageAlignment - misaligned);
  uint8_t* const results = filter_ring + T::kFilterBytes;
  uint8_t* const patch_ring = results + T::kTileM * T::kPitch;
  int* const table = reinterpret_cast<int*>(patch_ring + plan.patches * kPlanes * plan.plane);

  // Neighbouring blocks have the same pixels, which are the larger operand.
  const int tiles_n = (a.outputs + T::kTileN - 1) / T::kTileN;
  const int first_pixel = static_cast<int>(blockIdx.x) / tiles_n * T::kTileM;
  const int first_filter = static_cast<int>(blockIdx.x) % tiles_n * T::kTileN;
  const QuantizedPatch& patch = plan.patch;
  const int first_row = virtual_row_of(patch, place_of_output(a, first_pixel));
  for (int i = static_cast<int>(threadIdx.x); i < plan.patch.pixels; i += T::kAllThreads) {
    table[i] = source_of(a, patch, first_pixel, first_row, i);
  }
  if (threadIdx.x == 0) {
    any_strange = 0;
    prefetch_tensor_map(&filters);
    constexpr uint32_t kWarps = kConsumerThreads / 32;
    for (int i = 0; i < kMostPatches; ++i) {
      barrier_init(&barriers.patch_full[i], T::kProducers);
      barrier_init(&barriers.patch_empty[i], kWarps);
    }
    for (int i = 0; i < kFilterStages; ++i) {
      barrier_init(&barriers.filter_full[i], 1);
      barrier_init(&barriers.filter_empty[i], kWarps);
    }
    fence_barrier_init();
  }
  __syncthreads();
  // The next convolution may take multiprocessors that the last blocks of this one leave free.
  wait_for_kernel_before();
  let_next_kernel_start();

  const int warp = __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x) / 32, 0);
  if (warp >= kConsumerThreads / 32) {
    if constexpr (T::kBlocks == 1) give_up_registers<40>();
    produce_bytes<T>(a, plan, filters, barriers, filter_ring, patch_ring, table, first_filter,
                     static_cast<int>(threadIdx.x) - kConsumerThreads);
    return;
  }

  if constexpr (T::kBlocks == 1) take_registers<232>();
  const bool early_residual = a.residual != nullptr && a.vectors;
  if (early_residual) {
    for_results<T>(a, first_pixel, first_filter, [&](int in_tile, int64_t of_y, int /*bytes*/) {
      copy_async<kChunkBytes>(reinterpret_cast<float*>(results + in_tile),
                              reinterpret_cast<const float*>(a.residual + of_y));
    });
    commit_copies();
  }
  if (columns.fill(a, first_filter)) any_strange = 1;

  constexpr int kTiles = T::kGroupTiles;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_of_warp = warp / 4 * kTiles * 64 + warp % 4 * 16;
  uint32_t place[kTiles];
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    const int of_tile = first_of_warp + i * 64 + lane % 16;
    const int pixel = place_in_patch(a, patch, first_pixel, first_row, of_tile);
    place[i] = static_cast<uint32_t>(pixel * kChunkBytes + lane / 16 * plan.plane);
  }
  QuantizedSums<T> sums[kTiles] = {};
  consume_bytes<T>(a, plan, barriers, filter_ring, patch_ring, place, sums);

  if (early_residual) wait_copies<0>();
  sync_consumers();
  if (a.numbers != nullptr) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      write_numbers<T>(a, sums[i], columns, first_pixel, first_filter, first_of_warp + i * 64, 0);
    }
    return;
  }
  if (a.residual != nullptr && !early_residual) {
    for_results<T>(a, first_pixel, first_filter, [&](int in_tile, int64_t of_y, int bytes) {
      for (int i = 0; i < bytes; ++i) results[in_tile + i] = a.residual[of_y + i];
    });
    sync_consumers();
  }
  const bool strange = any_strange != 0;
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    store_sums<T>(a, strange, sums[i], columns, results, first_of_warp + i * 64, 0);
  }
  sync_consumers();
  write_results<T>(a, results, first_pixel, first_filter);
#endif
}

template <QuantizedWgmmaTile tile>
void launch_tile(const QuantizedWgmmaPlan& plan, const QuantizedArguments& arguments, cudaStream_t stream) {
  using T = QuantizedWgmmaTiling<tile>;
  const CUtensorMap filters = byte_tensor_map(
      {.data = arguments.w, .inner = arguments.terms, .outer = arguments.all_outputs, .pitch = arguments.terms},
      tile.filters);
  const auto kernel = quantized_wgmma<T>;
  allow_shared_memory(kernel, static_cast<std::size_t>(plan.shared_bytes));
  const int64_t blocks = cuda::divide_up(int64_t{arguments.pixels}, int64_t{T::kTileM}) *
                         cuda::divide_up(int64_t{arguments.outputs}, int64_t{T::kTileN});
  const cuda::Launch shape{
      .grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(arguments.groups)),
      .block = dim3(T::kAllThreads),
      .shared_bytes = static_cast<unsigned>(plan.shared_bytes),
  };
  launch_with(kernel, shape, {.early = true}, stream, arguments, plan, filters);
}

}  // namespace

std::optional<QuantizedWgmmaPlan> quantized_wgmma_plan(const backends::ConvolutionShape& shape, int tile_index) {
  constexpr int kMultiprocessorBytes = 228 * 1024, kReserved = 4 * 1024;  // of a block, for static ones too
  constexpr int64_t kMostTerms = (int64_t{1} << 31) / (255 * 255);        // of two bytes each, summed in s32
  const QuantizedWgmmaTile& tile = kQuantizedWgmmaTiles[static_cast<std::size_t>(tile_index)];
  const std::optional<QuantizedPatch> patch = quantized_patch(shape, tile.pixels);
  if (!patch || shape.group_inputs % kPatchChannels != 0 || patch->taps * shape.group_inputs > kMostTerms ||
      int64_t{patch->pixels} * kPatchChannels > kMultiprocessorBytes) {
    return std::nullopt;
  }
  QuantizedWgmmaPlan plan{.patch = *patch};
  plan.chunks = static_cast<int>(shape.group_inputs / kPatchChannels);
  // Two pixels' chunks, which lanes copy side by side, then lie in all 32 banks.
  constexpr int kBankBytes = 128, kPlaneOffset = 32;
  plan.plane = cuda::divide_up(patch->pixels * kChunkBytes, kBankBytes) * kBankBytes + kPlaneOffset;
  const int fixed = kStageAlignment + kFilterStages * tile.filters * kPatchChannels + result_bytes(tile) +
                    patch->pixels * static_cast<int>(sizeof(int));
  const int patch_bytes = kPlanes * plan.plane;
  // As many blocks a multiprocessor as registers allow, if two patches fit then.
  const int wanted = std::min(plan.chunks, patch->pointwise ? kMostPatches : 3);
  const int least = std::min(plan.chunks, 2);
  for (int blocks = tile.blocks; blocks >= 1; --blocks) {
    const int most = std::min(kMultiprocessorBytes / blocks, kMultiprocessorBytes - 1024) - kReserved;
    for (int patches = wanted; patches >= least; --patches) {
      plan.patches = patches;
      plan.shared_bytes = fixed + patches * patch_bytes;
      if (plan.shared_bytes <= most) return plan;
    }
  }
  return std::nullopt;
}

void launch_quantized_wgmma(int index, const QuantizedWgmmaPlan& plan, const QuantizedArguments& arguments,
                            cudaStream_t stream) {
  using Run = void (*)(const QuantizedWgmmaPlan&, const QuantizedArguments&, cudaStream_t);
  constexpr auto& kTiles = kQuantizedWgmmaTiles;
  static constexpr Run kRuns[] = {launch_tile<kTiles[0]>, launch_tile<kTiles[1]>, launch_tile<kTiles[2]>,
                                  launch_tile<kTiles[3]>};
  static_assert(std::size(kRuns) == std::size(kTiles));
  kRuns[index](plan, arguments, stream);
}

}  // namespace gpunn::cuda_tiled
