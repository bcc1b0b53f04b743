// gemm:wgmma_rounding: BF16 matrix product of float32 tensors, rounded while the product runs. In gemm:wgmma_persistent
// a separate pass rounds the operands at the speed of memory, which takes half as long as the product itself at 2048^3.
// Here that pass rounds only the first K. The three warps beside the producer's round the rest in the order in which
// tiles need it, so that memory and tensor cores work at the same time. A counter for each slab of a panel tells
// producers that it has been rounded. Running blocks take the next free box, so that none waits for a block that does
// not run. Pairs of blocks share their tiles of b, since with the rounding beside it the product waits for L2. It
// refuses problems of few tiles, on which it is slow.
//
// H200, NN, with the rounding, each sample after a rest: 4096^3 in 213 us, 235 with a pass and gemm:wgmma_persistent,
// 185 in cuBLAS on bfloat16 tensors; 8192^3 in 1.48 ms, 1.62 and 1.42 (up to 1.66 ms in sequence, as the GPU grows
// hot); 2048^3 in 36 us, 39 and 25. At 2048^3 the pass alone takes 11.6 us at the speed of memory and slows the
// product: 34 us if no block waits for the rounding.
#pragma once

#include <cuda_bf16.h>

#include "cuda_common/divide_up.hpp"
#include "dependent_launch.cuh"
#include "gemm/wgmma/wgmma_persistent.cuh"

namespace gpunn::cuda_tiled {

inline constexpr int kBox = 64;  // numbers each way, which a warp rounds at a time
inline constexpr int kBoxQuarters = 4;

// An operand, and where it is rounded to.
struct RoundedOperand {
  const float* from;
  uint16_t* to;
  int lines;    // of memory
  int columns;  // of a line, and of its pitch in `from`
  int pitch;    // in `to`, a multiple of 8
  int boxes;    // of each slab
  int panel_boxes;

  __host__ __device__ int panels() const { return cuda::divide_up(boxes, panel_boxes); }
  __host__ __device__ int boxes_of(int panel) const {
    const int left = boxes - panel * panel_boxes;
    return left < panel_boxes ? left : panel_boxes;
  }
};

// What there is to be rounded, in its order: slab after slab the first panels of a and b, then b's others, panel after
// panel, then a's. A panel is what the tiles of one wave read, a slab 64 K of it.
struct Rounding {
  RoundedOperand a, b;
  int slabs;
  int head;            // slabs of the first panels that the pass before rounds
  unsigned* counters;  // the next box; then for each slab of each panel of a, then of b, how many boxes are done

  __host__ __device__ int first_boxes() const { return a.boxes_of(0) + b.boxes_of(0); }
  __host__ __device__ int boxes() const { return (a.boxes + b.boxes) * slabs; }
  __host__ __device__ int counters_used() const { return 1 + (a.panels() + b.panels()) * slabs; }
};

struct Box {
  bool of_b;
  int panel, slab;
  int index;  // in its slab
};

__device__ __forceinline__ Box box_of_others(const RoundedOperand& operand, bool of_b, int slabs, int at) {
  const int panel = 1 + at / (slabs * operand.panel_boxes);
  at -= (panel - 1) * slabs * operand.panel_boxes;
  const int boxes = operand.boxes_of(panel);
  return {of_b, panel, at / boxes, panel * operand.panel_boxes + at % boxes};
}

__device__ __forceinline__ Box box_at(const Rounding& rounding, int at) {
  const int of_a = rounding.a.boxes_of(0), both = rounding.first_boxes();
  if (at < both * rounding.slabs) {
    const int slab = at / both, index = at % both;
    return index < of_a ? Box{false, 0, slab, index} : Box{true, 0, slab, index - of_a};
  }
  at -= both * rounding.slabs;
  const int others_of_b = (rounding.b.boxes - rounding.b.boxes_of(0)) * rounding.slabs;
  return at < others_of_b ? box_of_others(rounding.b, true, rounding.slabs, at)
                          : box_of_others(rounding.a, false, rounding.slabs, at - others_of_b);
}

__device__ __forceinline__ unsigned* counter_of(const Rounding& rounding, bool of_b, int panel, int slab) {
  return rounding.counters + 1 + ((of_b ? rounding.a.panels() : 0) + panel) * rounding.slabs + slab;
}

__device__ __forceinline__ uint32_t rounded_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return uint32_t{__bfloat16_as_ushort(pair.x)} | (uint32_t{__bfloat16_as_ushort(pair.y)} << 16U);
}

// Rounds kLines lines of a box from `first` on. One warp, a lane eight numbers of every fourth.
template <int kLines, Major kMajor>
__device__ __forceinline__ void round_lines(const RoundedOperand& operand, const Box& box, int first) {
  const int outer = box.index * kBox, k = box.slab * kBox;
  const int line0 = (kMajor == Major::kK ? outer : k) + first, column0 = kMajor == Major::kK ? k : outer;
  const int line = static_cast<int>(threadIdx.x) % 32 / 8, column = column0 + static_cast<int>(threadIdx.x) % 8 * 8;
  const float* from = operand.from + int64_t{line0 + line} * operand.columns + column;
  uint16_t* to = operand.to + int64_t{line0 + line} * operand.pitch + column;
  const int64_t step = int64_t{operand.columns} * 4, step_to = int64_t{operand.pitch} * 4;
  if (line0 + kLines <= operand.lines && operand.columns % 4 == 0 && column0 + kBox <= operand.columns) {
    float4 values[kLines / 4][2];
#pragma unroll
    for (int i = 0; i < kLines / 4; ++i, from += step) {
      values[i][0] = __ldcs(reinterpret_cast<const float4*>(from));
      values[i][1] = __ldcs(reinterpret_cast<const float4*>(from) + 1);
    }
#pragma unroll
    for (int i = 0; i < kLines / 4; ++i, to += step_to) {
      const float4 low = values[i][0], high = values[i][1];
      *reinterpret_cast<uint4*>(to) = make_uint4(rounded_pair(low.x, low.y), rounded_pair(low.z, low.w),
                                                 rounded_pair(high.x, high.y), rounded_pair(high.z, high.w));
    }
  } else {
    if (column >= operand.columns) return;
    const int end = min(kLines, operand.lines - line0);
#pragma unroll 1
    for (int at = line; at < end; at += 4, from += step, to += step_to) {
      const auto pair = [&](int j) {
        return rounded_pair(column + j < operand.columns ? from[j] : 0.0F,
                            column + j + 1 < operand.columns ? from[j + 1] : 0.0F);
      };
      *reinterpret_cast<uint4*>(to) = make_uint4(pair(0), pair(2), pair(4), pair(6));
    }
  }
}

// The pass before: the first slabs, a quarter of a box a warp, and the counters.
template <Major kMajorA, Major kMajorB>
__global__ __launch_bounds__(256) void round_head(Rounding rounding) {
  let_next_kernel_start();
  wait_for_kernel_before();
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int threads = static_cast<int>(gridDim.x * blockDim.x);
  const int boxes = rounding.head * rounding.first_boxes();
  constexpr int kLines = kBox / kBoxQuarters;
  for (int i = thread / 32; i < boxes * kBoxQuarters; i += threads / 32) {
    const Box box = box_at(rounding, i / kBoxQuarters);
    const int first = i % kBoxQuarters * kLines;
    if (box.of_b)
      round_lines<kLines, kMajorB>(rounding.b, box, first);
    else
      round_lines<kLines, kMajorA>(rounding.a, box, first);
  }
  for (int i = thread; i < rounding.counters_used(); i += threads) {
    rounding.counters[i] = i == 0 ? static_cast<unsigned>(boxes) : 0;
  }
}

// The others, a box at a time. One warp.
template <Major kMajorA, Major kMajorB>
__device__ __forceinline__ void round_rest(const Rounding& rounding) {
  constexpr int kLines = kBox / 2;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int end = rounding.boxes();
  unsigned next = 0;
  if (lane == 0) next = atomicAdd(rounding.counters, 1U);
  for (;;) {
    const int at = static_cast<int>(__shfl_sync(0xFFFFFFFFU, next, 0));
    if (at >= end) break;
    if (lane == 0) next = atomicAdd(rounding.counters, 1U);
    const Box box = box_at(rounding, at);
#pragma unroll 1
    for (int first = 0; first < kBox; first += kLines) {
      if (box.of_b)
        round_lines<kLines, kMajorB>(rounding.b, box, first);
      else
        round_lines<kLines, kMajorA>(rounding.a, box, first);
    }
    __syncwarp();
    if (lane == 0) {
      asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter_of(rounding, box.of_b, box.panel, box.slab))
                   : "memory");
    }
  }
}

// From here on TMA (the async proxy) can read ordinary writes, including those of other blocks.
__device__ __forceinline__ void fence_copy_engine() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// How many slabs from the first of a panel on are known to be rounded. Of the producer's warp.
struct Progress {
  const unsigned* counters;  // of the panel
  int slabs;
  unsigned boxes;  // of a slab
  int ready;

  __device__ __forceinline__ void wait_for(int slab) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    while (slab >= ready) {
      unsigned done = 0;
      if (slab + lane < slabs) {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(done) : "l"(counters + slab + lane) : "memory");
      }
      const unsigned missing = __ballot_sync(0xFFFFFFFFU, done < boxes);
      ready = slab + (missing == 0 ? 32 : __ffs(static_cast<int>(missing)) - 1);
    }
  }
};

template <class T>
__device__ __forceinline__ void produce_rounded(Ring<T>& ring, const CUtensorMap& a, const CUtensorMap& b, int row,
                                                int column, int blocks, const Rounding& rounding) {
  const auto progress = [&](const RoundedOperand& operand, bool of_b, int outer) -> Progress {
    const int panel = outer / (operand.panel_boxes * kBox);
    return {counter_of(rounding, of_b, panel, 0), rounding.slabs, static_cast<unsigned>(operand.boxes_of(panel)),
            panel == 0 ? rounding.head : 0};
  };
  Progress of_a = progress(rounding.a, false, row), of_b = progress(rounding.b, true, column);
  const Sharing& sharing = ring.sharing.b;
  const int lines_b = T::kColumns / sharing.count, line_b = lines_b * sharing.index;
  const uint16_t with_b = sharing.blocks();
  const bool leader = threadIdx.x % 32 == 0;
  for (int block = 0; block < blocks; ++block) {
    if (block >= of_a.ready || block >= of_b.ready) {
      of_a.wait_for(block);
      of_b.wait_for(block);
      fence_copy_engine();
    }
    if (leader) {
      barrier_wait(&ring.empty[ring.stage], ring.phase ^ 1U);
      uint64_t* full = &ring.full[ring.stage];
      barrier_expect(full, T::kStageBytes);
      copy_operand<T, T::kMajorA>(ring.a(), a, full, block * T::kBlockK, row, T::kRows, 0);
      copy_operand<T, T::kMajorB>(ring.b() + line_b * kLineBytes, b, full, block * T::kBlockK, column + line_b, lines_b,
                                  with_b);
    }
    __syncwarp();
    ring.advance();
  }
}

// As wgmma_persistent, kPairs: in clusters of two blocks that share tiles of b, where the three warps beside the
// producer's round. (With the number of blocks as an argument single blocks lost 5 % of 2048^3.)
template <class T, bool kPairs>
__global__ __launch_bounds__(T::kThreads, 1) void wgmma_rounding(const __grid_constant__ CUtensorMap a,
                                                                 const __grid_constant__ CUtensorMap b, WgmmaOutput out,
                                                                 TileOrder order, int blocks, Rounding rounding) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ uint8_t shared[];
  __shared__ RingBarriers<T> barriers;
  constexpr int kShare = kPairs ? 2 : 1;
  const int rank = kPairs ? static_cast<int>(cluster_rank()) : 0;
  Ring<T> ring = make_ring<T>(shared, barriers, a, b, {.a = {}, .b = {.count = kShare, .index = rank}});
  begin_ring(kShare);

  static_assert(T::kConsumers == 2 && !T::kTf32);
  const int warpgroup = warpgroup_index();
  const int clusters = static_cast<int>(gridDim.x) / kShare;
  const int tiles = order.row_tiles * order.column_tiles;
  if (warpgroup == 0) {
    give_up_registers<88>();
    const int warp = __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x) / 32, 0);
    if (warp == 0) {
      for (int tile = static_cast<int>(blockIdx.x) / kShare; tile < tiles; tile += clusters) {
        const int2 at = order(tile);
        produce_rounded(ring, a, b, (at.x * kShare + rank) * T::kRows, at.y * T::kColumns, blocks, rounding);
      }
    } else {
      round_rest<T::kMajorA, T::kMajorB>(rounding);
    }
  } else {
    take_registers<208>();
    const int consumer = warpgroup - 1;
    const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    const int thread_row = consumer * 64 + row_of_thread<T>(thread);
    float d[T::kColumns / 2];
    for (int tile = static_cast<int>(blockIdx.x) / kShare; tile < tiles; tile += clusters) {
      const int2 at = order(tile);
      consume(ring, d, consumer, thread, blocks, blocks);
      store<T, false>(d, out, (at.x * kShare + rank) * T::kRows, at.y * T::kColumns, thread_row, thread % 4 * 2);
    }
  }
  // A block that ends takes its shared memory with it, into which others may still write or arrive.
  if constexpr (kPairs) cluster_sync();
#endif
}

}  // namespace gpunn::cuda_tiled
