// half_product: the kernel of the matrix product of half_product.hpp. Persistent blocks walk over tiles of y'. One
// thread of a producer warp fills the ring of stages, while two warpgroups multiply the stages by wgmma: each half of a
// tile's rows, or tiles in turns. During the store of a tile the ring is already filled for the next one.
//
// H100, bf16: a store by threads takes 4.2 us of a tile of 128 x 256, since all multiprocessors store at the same time;
// by TMA, which goes on during the next tile, 2.3. Turns hide it. A multicast makes less traffic, but takes no less
// time below 8192^3, where it saves power: 1.37 ms in place of 1.56.
//
// Long sums with few outputs are split: each part stores its sums in memory, and a second kernel adds them in their
// order (half_parts.cu), so that equal inputs give equal bits.
#pragma once

#include <cstdint>

#include "gemm/wgmma/cluster.cuh"
#include "gemm/wgmma/wgmma.cuh"
#include "half/consumer_turns.cuh"
#include "half/half_copies.cuh"
#include "half/half_instructions.cuh"
#include "half/half_product.hpp"
#include "half/half_store.cuh"

namespace gpunn::cuda_tiled {

template <HalfTile tile, HalfElement element, Major major_a, Major major_b, HalfEnding ending>
struct HalfTiling {
  static constexpr HalfElement kElement = element;
  static constexpr Major kMajorA = major_a, kMajorB = major_b;
  static constexpr bool kStatistics = ending == HalfEnding::kStatistics;
  static constexpr bool kResidual = ending == HalfEnding::kResidual;
  static constexpr bool kGradient = ending == HalfEnding::kGradient;
  static constexpr int kConsumers = tile.consumers;
  static constexpr int kRows = tile.rows, kColumns = tile.columns, kStages = tile.stages;
  static constexpr int kBlocksEach = tile.blocks;  // of threads a multiprocessor
  static constexpr int kCluster = tile.cluster;
  static constexpr int kClusterRows = tile.cluster_rows(), kClusterColumns = tile.cluster_columns();
  static constexpr int kSharersA = tile.side_by_side ? tile.cluster : 1, kSharersB = kCluster / kSharersA;
  static constexpr bool kTurns = tile.turns;
  static constexpr int kRowBlocks = kRows / 64 / (kTurns ? 1 : kConsumers);  // of 64 rows, a consumer
  static constexpr int kReaders = (kTurns ? 1 : kConsumers) * kWarpgroup / 32;
  // A warp feeds the ring, beside which two consumers have 168 registers, three 152, or 96 of two blocks. Where they
  // need more it is a warpgroup, which can give up some of its own. Then no block of the next kernel fits beside it.
  static constexpr bool kGivesRegisters = kGradient || (tile.pieces > 0 && kConsumers == 2);
  static_assert(!kGivesRegisters || kBlocksEach == 1);
  static constexpr int kThreads = kConsumers * kWarpgroup + (kGivesRegisters ? kWarpgroup : 32);
  static constexpr uint32_t kProducerRegisters = 40, kConsumerRegisters = 232;
  static constexpr int kBytesA = kRows * kLineBytes, kBytesB = kColumns * kLineBytes;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  static constexpr int kBoxBytes = 64 * kLineBytes;         // of 64 rows or columns, whichever index runs along lines
  static constexpr int kPass = tile.blocks == 1 ? 64 : 32;  // columns that a warp stores at a time
  // TMA can store y.
  static constexpr bool kBulk = tile.pieces > 0 && !kStatistics && !kGradient;
  static constexpr int kPieces = kBulk ? tile.pieces : 1;
  static constexpr int kPieceBytes = kPieceRows * kPass * int{sizeof(uint16_t)};
  static constexpr int kStagingBytes = kPieces * kPieceBytes;  // of a warp
  static constexpr int kStoreBytes = kConsumers * 4 * kStagingBytes;
  static_assert(kColumns / kPass % kPieces == 0 && kColumns / 64 % kSharersB == 0);
  static_assert(!kTurns || kConsumers == 2);
  // The swizzle wants stages at multiples of 1024 bytes, which dynamic shared memory doesn't promise.
  static constexpr int kSharedBytes = kStages * kStageBytes + kStoreBytes + 1024;
};

// The next work item of a block: a tile of a phase, or a part of its K.
struct HalfItem {
  int phase;
  int2 at;          // the tile, in tiles: its row and column
  int part;         // where its sums are left; -1: they are the tile's
  int first, last;  // blocks of K
};

__device__ __forceinline__ bool find_item(const HalfProduct& product, int index, HalfItem& item) {
  int phase = 0;
  while (index >= product.phase[phase].items) {
    index -= product.phase[phase].items;
    if (++phase == product.phases) return false;
  }
  const HalfPhase& of = product.phase[phase];
  item.phase = phase;
  item.part = -1;
  item.first = 0;
  item.last = of.blocks;
  int tile = index;
  if (index >= of.whole_tiles) {
    const Divider::Result split = of.split_tiles(index - of.whole_tiles);
    tile = of.whole_tiles + split.rest;
    item.part = split.rest * product.splits + split.quotient;
    item.first = split.quotient * product.blocks_of_split;
    item.last = min(item.first + product.blocks_of_split, of.blocks);
  }
  item.at = place_of_tile(of, tile);
  return true;
}

__device__ __forceinline__ Pixel pixel_of(const Windows& windows, int window) {
  const Divider::Result image = windows.image(window);
  const Divider::Result row = windows.columns(image.rest);
  return {.row = windows.top + row.quotient * windows.row_stride,
          .column = windows.left + row.rest * windows.column_stride,
          .image = image.quotient};
}

// Where in y' the item's tile of the block `rank` of a cluster begins.
template <class T>
__device__ __forceinline__ int first_row_of(const HalfItem& item, int rank) {
  return item.at.x * T::kClusterRows + (T::kSharersB > 1 ? rank * T::kRows : 0);
}
template <class T>
__device__ __forceinline__ int first_column_of(const HalfItem& item, int rank) {
  return item.at.y * T::kClusterColumns + (T::kSharersA > 1 ? rank * T::kColumns : 0);
}

// Feeds the ring with an item's tile of the block `rank` of a cluster. One thread.
template <class T>
__device__ __forceinline__ void produce_item(Ring<T>& ring, const HalfProduct& product, const HalfItem& item,
                                             int rank) {
  constexpr int kBoxesB = T::kColumns / 64;
  // What this block brings of a' and of b', and to which blocks.
  constexpr int kMyRows = T::kRows / T::kSharersA;
  constexpr int kMyColumns = T::kColumns / T::kSharersB, kMyBoxesB = kBoxesB / T::kSharersB;
  constexpr auto kToA = static_cast<uint16_t>((1U << T::kSharersA) - 1U);
  constexpr auto kToB = static_cast<uint16_t>((1U << T::kSharersB) - 1U);
  const int rank_a = T::kSharersA > 1 ? rank : 0, rank_b = T::kSharersB > 1 ? rank : 0;
  const HalfPhase& phase = product.phase[item.phase];
  const CUtensorMap* const map_a = &product.a[item.phase];
  const CUtensorMap* const map_b = &product.b;
  const int row = first_row_of<T>(item, rank), column = first_column_of<T>(item, rank);
  const int channel_blocks = static_cast<int>(product.channel_blocks.by);

  // Of K: the tap (i, j) and its block of channels. With image_b it is the columns that have taps.
  int i = 0, j = 0, channel = item.first;
  if (!product.image_b && item.first >= channel_blocks) {
    const Divider::Result tap = product.channel_blocks(item.first);
    channel = tap.rest;
    i = tap.quotient / phase.tap_columns.count;
    j = tap.quotient - i * phase.tap_columns.count;
  }
  Pixel windows{};
  if (product.image_a) windows = pixel_of(phase.windows, row + rank_a * kMyRows);
  int box_channel[kBoxesB], box_row_offset[kBoxesB], box_column_offset[kBoxesB];
  int boxes = 0;
  if (T::kMajorB == Major::kMN && product.image_b) {
#pragma unroll
    for (int box = 0; box < kBoxesB; ++box) {
      const int at = column / 64 + box;
      const Divider::Result tap = product.channel_blocks(at);
      box_channel[box] = tap.rest * 64;
      const int tap_row = tap.quotient / phase.tap_columns.count;
      box_row_offset[box] = tap_row * phase.tap_rows.offset_step;
      box_column_offset[box] = (tap.quotient - tap_row * phase.tap_columns.count) * phase.tap_columns.offset_step;
      if (at * 64 < product.columns) ++boxes;
    }
  }

  for (int block = item.first; block < item.last; ++block) {
    barrier_wait(&ring.empty[ring.stage], ring.phase ^ 1U);
    uint64_t* const full = &ring.full[ring.stage];
    uint8_t* const to_a = ring.a();
    uint8_t* const to_b = ring.b();
    if constexpr (T::kMajorB == Major::kMN) {
      if (product.image_b) {
        // What lies behind the last column is left as it is: it makes columns that are not stored.
        barrier_expect(full, T::kBytesA + static_cast<uint32_t>(boxes) * T::kBoxBytes);
        const Pixel pixels = pixel_of(phase.windows, block * kHalfBlockK);
#pragma unroll
        for (int box = 0; box < kBoxesB; ++box) {
          if (box >= boxes || box / kMyBoxesB != rank_b) continue;
          copy_windows<kToB>(to_b + box * T::kBoxBytes, map_b, full, box_channel[box], pixels, box_row_offset[box],
                             box_column_offset[box]);
        }
      }
    }
    if (!product.image_b) {
      barrier_expect(full, T::kStageBytes);
      const int tap = (phase.tap_rows.first + i * phase.tap_rows.step) * product.filter_columns +
                      phase.tap_columns.first + j * phase.tap_columns.step;
      if constexpr (T::kMajorB == Major::kK) {
        copy_box_of_tap<kToB>(to_b + rank_b * kMyColumns * kLineBytes, map_b, full, channel * kHalfBlockK, tap,
                              column + rank_b * kMyColumns);
      } else {
        for (int box = rank_b * kMyBoxesB; box < (rank_b + 1) * kMyBoxesB; ++box) {
          copy_box_of_tap<kToB>(to_b + box * T::kBoxBytes, map_b, full, column + box * 64, tap, channel * kHalfBlockK);
        }
      }
    }
    if constexpr (T::kMajorA == Major::kK) {
      uint8_t* const my_rows = to_a + rank_a * kMyRows * kLineBytes;
      if (product.image_a) {
        copy_windows<kToA>(my_rows, map_a, full, channel * kHalfBlockK, windows, i * phase.tap_rows.offset_step,
                           j * phase.tap_columns.offset_step);
      } else {
        copy_box_of_tap<kToA>(my_rows, map_a, full, block * kHalfBlockK, 0, row + rank_a * kMyRows);
      }
    } else {
      for (int box = rank_a; box < T::kRows / 64; box += T::kSharersA) {
        copy_box_of_tap<kToA>(to_a + box * T::kBoxBytes, map_a, full, row + box * 64, 0, block * kHalfBlockK);
      }
    }
    ring.advance();
    if (++channel == channel_blocks) {
      channel = 0;
      if (++j == phase.tap_columns.count) {
        j = 0;
        ++i;
      }
    }
  }
}

template <class T>
__device__ __forceinline__ void multiply_half_stage(float (&d)[T::kColumns / 2], const uint8_t* a, const uint8_t* b,
                                                    bool accumulate) {
  // 16 of K a step: along a line 32 bytes, across lines 16 lines.
  constexpr int kStepA = T::kMajorA == Major::kK ? 32 : 16 * kLineBytes;
  constexpr int kStepB = T::kMajorB == Major::kK ? 32 : 16 * kLineBytes;
  constexpr int kTransposeA = T::kMajorA == Major::kMN, kTransposeB = T::kMajorB == Major::kMN;
  const uint64_t from_a = tile_descriptor(a, T::kBoxBytes), from_b = tile_descriptor(b, T::kBoxBytes);
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    // A descriptor's lowest bits are the address in units of 16 bytes.
    const uint64_t step_a = from_a + static_cast<unsigned>(step * kStepA / 16);
    const uint64_t step_b = from_b + static_cast<unsigned>(step * kStepB / 16);
    if constexpr (T::kElement == HalfElement::kBf16)
      wgmma_bf16<kTransposeA, kTransposeB>(d, step_a, step_b, accumulate || step > 0);
    else
      wgmma_f16<kTransposeA, kTransposeB>(d, step_a, step_b, accumulate || step > 0);
  }
}

// Of a consumer all of whose rows are beyond the last: it leaves the tensor cores to the other.
template <class T>
__device__ __forceinline__ void pass_over_item(Ring<T>& ring, int thread, int blocks) {
  for (int block = 0; block < blocks; ++block) {
    barrier_wait(&ring.full[ring.stage], ring.phase);
    release(ring, ring.stage, thread);
    ring.advance();
  }
}

// d = the sum over `blocks` stages. One warpgroup; `thread` is of it.
template <class T>
__device__ __forceinline__ void consume_item(Ring<T>& ring, float (&d)[T::kRowBlocks][T::kColumns / 2], int consumer,
                                             int thread, int blocks, ConsumerTurns& turns) {
  if constexpr (T::kTurns) turns.wait(consumer);
  const int first_box = T::kTurns ? 0 : consumer * T::kRowBlocks;
  int previous = 0;
  for (int block = 0; block < blocks; ++block) {
    barrier_wait(&ring.full[ring.stage], ring.phase);
    warpgroup_arrive();
#pragma unroll
    for (int rows = 0; rows < T::kRowBlocks; ++rows) {
      multiply_half_stage<T>(d[rows], ring.a() + (first_box + rows) * T::kBoxBytes, ring.b(), block > 0);
    }
    warpgroup_commit();
    warpgroup_wait<1>();  // the previous stage has been read
    if (block > 0) release(ring, previous, thread);
    previous = ring.stage;
    ring.advance();
  }
  if constexpr (T::kTurns) turns.hand_over(consumer, thread);
  warpgroup_wait<0>();
  if (blocks > 0) release(ring, previous, thread);
}

template <class T>
__global__ __launch_bounds__(T::kThreads,
                             T::kBlocksEach) void half_product(const __grid_constant__ HalfProduct product) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ uint8_t shared[];
  __shared__ RingBarriers<T> barriers;
  __shared__ uint64_t begins[T::kConsumers];
  if (T::kTurns && threadIdx.x < T::kConsumers) barrier_init(&begins[threadIdx.x], ConsumerTurns::kArrivals);
  const int rank = T::kCluster == 1 ? 0 : static_cast<int>(cluster_rank());
  Ring<T> ring = make_ring<T>(
      shared, barriers, product.a[0], product.b,
      {.a = {.count = T::kSharersA, .index = T::kSharersA > 1 ? rank : 0},
       .b = {.count = T::kSharersB, .index = T::kSharersB > 1 ? rank : 0, .first_rank = T::kSharersB > 1 ? 0 : rank}});
  begin_ring(T::kCluster);

  const int warpgroup = warpgroup_index();
  const int first = static_cast<int>(blockIdx.x) / T::kCluster, step = static_cast<int>(gridDim.x) / T::kCluster;
  HalfItem item;
  if (warpgroup == T::kConsumers) {
    if constexpr (T::kGivesRegisters) give_up_registers<T::kProducerRegisters>();
    if (threadIdx.x == T::kConsumers * kWarpgroup) {
      for (int index = first; find_item(product, index, item); index += step) {
        produce_item(ring, product, item, rank);
      }
    }
  } else {
    if constexpr (T::kGivesRegisters) take_registers<T::kConsumerRegisters>();
    const int consumer = warpgroup;
    const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    uint8_t* const staging_of_all = ring.stages + T::kStages * T::kStageBytes + consumer * 4 * T::kStagingBytes;
    uint8_t* const staging = staging_of_all + thread / 32 * T::kStagingBytes;
    ConsumerTurns turns(begins, consumer);
    int counted = 0;
    if constexpr (T::kStatistics) counted = counted_rows(product.statistics, product.phase[0].rows);
    for (int index = first, turn = 0; find_item(product, index, item); index += step, turn ^= 1) {
      if (T::kTurns && turn != consumer) {
        ring.pass(item.last - item.first);
        continue;
      }
      const int row_in_tile = T::kTurns ? 0 : consumer * T::kRowBlocks * 64;
      const int first_row = first_row_of<T>(item, rank) + row_in_tile, column = first_column_of<T>(item, rank);
      if (first_row >= product.phase[item.phase].rows) {
        pass_over_item(ring, thread, item.last - item.first);
        continue;
      }
      if constexpr (T::kGradient) counted = counted_rows(product.gradient, product.phase[item.phase]);
      float d[T::kRowBlocks][T::kColumns / 2];
      consume_item(ring, d, consumer, thread, item.last - item.first, turns);
#pragma unroll
      for (int rows = 0; rows < T::kRowBlocks; ++rows) {
        const int row_of_warp = rows * 64 + thread / 32 * 16;
        if (item.part >= 0) {
          leave_half_sums<T>(d[rows], product.parts + int64_t{item.part} * (T::kClusterRows * T::kClusterColumns),
                             first_row + row_of_warp - item.at.x * T::kClusterRows,
                             column - item.at.y * T::kClusterColumns);
        } else {
          store_half_sums<T>(d[rows], product, product.phase[item.phase], first_row + row_of_warp, column, staging,
                             counted);
          if constexpr (T::kStatistics) {
            const int slab_row = first_row + rows * 64;
            if (slab_row < product.phase[0].rows) {
              store_slab<T>(product, slab_row, column, counted, staging_of_all, consumer, thread);
            }
          }
          if constexpr (T::kGradient) {
            const int slab_row = first_row + rows * 64;
            if (slab_row < product.phase[item.phase].rows) {
              store_gradient_slab<T>(product, product.phase[item.phase], slab_row, column, staging_of_all, consumer,
                                     thread);
            }
          }
        }
      }
    }
    // A block that ends takes its shared memory with it, from which TMA may still read, and at whose barriers others
    // may still arrive. Only consumers wait: what follows the producer's loop would make its numbers ones of lanes that
    // may differ, and each copy slower (3x3 weight gradients, 128x64: 92 us in place of 63).
    if constexpr (T::kBulk) wait_for_store_reads<0>();
    if constexpr (T::kCluster > 1) cluster_sync();
  }
#endif
}

}  // namespace gpunn::cuda_tiled
