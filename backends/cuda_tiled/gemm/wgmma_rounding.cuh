// gemm:wgmma_rounding: BF16 of float32 tensors, rounded while the product runs. gemm:wgmma_persistent finds its
// operands rounded by a pass before it, at the speed of memory, which takes half as long as the product itself at
// 2048^3. Here that pass rounds only the first K, and the three warps beside the producer's do the rest in the order in
// which tiles need it: memory and tensor cores work at the same time. A counter for each cell (of 64 K by 2048 lines)
// tells producers that it has been rounded. Whichever blocks run take the next box that nobody has, so that none waits
// for a block that does not run.
// H200, with the rounding: 2048^3, NT, in 37.6 us instead of 41.4; 4096^3 in 219 us instead of 250; 8192^3 in 1.70 ms
// instead of 1.81, 648 TFLOP/s. What is left at 2048^3: three warps have too few loads under way to round at the speed
// of memory. On few tiles it is slow, and refuses.
#pragma once

#include <cuda_bf16.h>

#include "dependent_launch.cuh"
#include "wgmma_persistent.cuh"

namespace gpunn::cuda_tiled {

inline constexpr int kBox = 64;      // numbers each way, which a warp rounds at a time
inline constexpr int kPanel = 2048;  // lines of a cell
inline constexpr int kCellBoxes = kPanel / kBox;
inline constexpr int kBoxQuarters = 4;

// An operand, and where it is rounded to.
struct RoundedOperand {
  const float* from;
  uint16_t* to;
  int lines;    // of memory
  int columns;  // of a line, and of its pitch in `from`
  int pitch;    // in `to`, a multiple of 8
  int panels;
};

// What there is to be rounded, in its order: the first panels of a and b side by side, then b's others, then a's.
struct Rounding {
  RoundedOperand a, b;
  int slabs;           // of 64 K
  int head;            // cells that the pass before rounds
  unsigned* counters;  // the next box; then for each cell, by panel of a, then of b, how many boxes are done

  __host__ __device__ int cells() const { return (a.panels + b.panels) * slabs; }
};

struct Cell {
  bool of_b;
  int panel, slab;
};

__device__ __forceinline__ Cell cell_at(const Rounding& rounding, int at) {
  const int slabs = rounding.slabs;
  if (at < 2 * slabs) return {at % 2 == 1, 0, at / 2};
  at -= 2 * slabs;
  if (at < (rounding.b.panels - 1) * slabs) return {true, 1 + at / slabs, at % slabs};
  at -= (rounding.b.panels - 1) * slabs;
  return {false, 1 + at / slabs, at % slabs};
}

__device__ __forceinline__ unsigned* counter_of(const Rounding& rounding, const Cell& cell) {
  return rounding.counters + 1 + ((cell.of_b ? rounding.a.panels : 0) + cell.panel) * rounding.slabs + cell.slab;
}

__device__ __forceinline__ uint32_t rounded_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return uint32_t{__bfloat16_as_ushort(pair.x)} | (uint32_t{__bfloat16_as_ushort(pair.y)} << 16U);
}

// Rounds lines first..last of a box, 4 kGroups at a time. One warp, a lane eight numbers of a line. Calls
// `meanwhile` while it waits for memory.
template <int kGroups, Along kAlong, class Meanwhile>
__device__ __forceinline__ void round_box(const RoundedOperand& operand, const Cell& cell, int box, int first, int last,
                                          const Meanwhile& meanwhile) {
  const int outer = cell.panel * kPanel + box * kBox, k = cell.slab * kBox;
  const int line0 = (kAlong == Along::kK ? outer : k) + first, column0 = kAlong == Along::kK ? k : outer;
  const int lines = min(last - first, operand.lines - line0);
  const int line = static_cast<int>(threadIdx.x) % 32 / 8, column = column0 + static_cast<int>(threadIdx.x) % 8 * 8;
  const float* from = operand.from + int64_t{line0 + line} * operand.columns + column;
  uint16_t* to = operand.to + int64_t{line0 + line} * operand.pitch + column;
  const int64_t step = int64_t{operand.columns} * 4, step_to = int64_t{operand.pitch} * 4;
  if (lines == last - first && operand.columns % 4 == 0 && column0 + kBox <= operand.columns) {
#pragma unroll 1
    for (int at = 0; at < lines; at += 4 * kGroups) {
      float4 values[kGroups][2];
#pragma unroll
      for (int i = 0; i < kGroups; ++i, from += step) {
        values[i][0] = __ldcs(reinterpret_cast<const float4*>(from));
        values[i][1] = __ldcs(reinterpret_cast<const float4*>(from) + 1);
      }
      if (at == 0) meanwhile();
#pragma unroll
      for (int i = 0; i < kGroups; ++i, to += step_to) {
        const float4 low = values[i][0], high = values[i][1];
        *reinterpret_cast<uint4*>(to) = make_uint4(rounded_pair(low.x, low.y), rounded_pair(low.z, low.w),
                                                   rounded_pair(high.x, high.y), rounded_pair(high.z, high.w));
      }
    }
  } else {
    meanwhile();
    if (column >= operand.columns) return;
#pragma unroll 1
    for (int at = line; at < lines; at += 4, from += step, to += step_to) {
      const auto pair = [&](int j) {
        return rounded_pair(column + j < operand.columns ? from[j] : 0.0F,
                            column + j + 1 < operand.columns ? from[j + 1] : 0.0F);
      };
      *reinterpret_cast<uint4*>(to) = make_uint4(pair(0), pair(2), pair(4), pair(6));
    }
  }
}

// What is written here as ordinary memory is read by TMA (the async proxy) there.
__device__ __forceinline__ void fence_copy_engine() { asm volatile("fence.proxy.async;" ::: "memory"); }

// The pass before: the first cells, a quarter of a box a warp, and the counters.
template <Along kAlongA, Along kAlongB>
__global__ __launch_bounds__(256) void round_head(Rounding rounding) {
  let_next_kernel_start();
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int threads = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = thread; i <= rounding.cells(); i += threads) {
    rounding.counters[i] = i == 0 ? static_cast<unsigned>(rounding.head * kCellBoxes) : 0;
  }
  const auto nothing = [] {};
  constexpr int kLines = kBox / kBoxQuarters;
  for (int i = thread / 32; i < rounding.head * kCellBoxes * kBoxQuarters; i += threads / 32) {
    const Cell cell = cell_at(rounding, i / (kCellBoxes * kBoxQuarters));
    const int box = i / kBoxQuarters % kCellBoxes, first = i % kBoxQuarters * kLines;
    if (cell.of_b)
      round_box<4, kAlongB>(rounding.b, cell, box, first, first + kLines, nothing);
    else
      round_box<4, kAlongA>(rounding.a, cell, box, first, first + kLines, nothing);
  }
}

// The others, a box at a time. One warp. That a box is done is told while the next one's numbers are on their way.
template <Along kAlongA, Along kAlongB>
__device__ __forceinline__ void round_rest(const Rounding& rounding) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int end = rounding.cells() * kCellBoxes;
  unsigned* done = nullptr;
  const auto tell = [&] {
    if (done == nullptr) return;
    fence_copy_engine();
    __syncwarp();
    if (lane == 0) {
      __threadfence();
      atomicAdd(done, 1U);
    }
  };
  unsigned next = 0;
  if (lane == 0) next = atomicAdd(rounding.counters, 1U);
  for (;;) {
    const int at = static_cast<int>(__shfl_sync(0xFFFFFFFFU, next, 0));
    if (at >= end) break;
    if (lane == 0) next = atomicAdd(rounding.counters, 1U);
    const Cell cell = cell_at(rounding, at / kCellBoxes);
    const int box = at % kCellBoxes;
    if (cell.of_b)
      round_box<8, kAlongB>(rounding.b, cell, box, 0, kBox, tell);
    else
      round_box<8, kAlongA>(rounding.a, cell, box, 0, kBox, tell);
    done = counter_of(rounding, cell);
  }
  tell();
}

// How many slabs from the first of a panel on are known to be rounded. Of the producer's warp.
struct Progress {
  const unsigned* counters;  // of the panel
  int slabs;
  int ready;

  __device__ __forceinline__ void wait_for(int slab) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    while (slab >= ready) {
      unsigned done = 0;
      if (slab + lane < slabs) {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(done) : "l"(counters + slab + lane) : "memory");
      }
      const unsigned missing = __ballot_sync(0xFFFFFFFFU, done < static_cast<unsigned>(kCellBoxes));
      ready = slab + (missing == 0 ? 32 : __ffs(static_cast<int>(missing)) - 1);
    }
  }
};

template <class T>
__device__ __forceinline__ void produce_rounded(Ring<T>& ring, const CUtensorMap& a, const CUtensorMap& b, int row,
                                                int column, int blocks, const Rounding& rounding) {
  const auto progress = [&](bool of_b, int panel) -> Progress {
    const int known = panel == 0 ? rounding.head / 2 : 0;
    return {counter_of(rounding, {of_b, panel, 0}), rounding.slabs, known};
  };
  Progress of_a = progress(false, row / kPanel), of_b = progress(true, column / kPanel);
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
      copy_operand<T, T::kAlongA>(ring.a(), a, full, block * T::kBlockK, row, T::kRows, 0);
      copy_operand<T, T::kAlongB>(ring.b(), b, full, block * T::kBlockK, column, T::kColumns, 0);
    }
    __syncwarp();
    ring.advance();
  }
}

// As wgmma_persistent, where the three warps beside the producer's round.
template <class T>
__global__ __launch_bounds__(T::kThreads, 1) void wgmma_rounding(const __grid_constant__ CUtensorMap a,
                                                                 const __grid_constant__ CUtensorMap b, WgmmaOutput out,
                                                                 TileOrder order, int blocks, Rounding rounding) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ uint8_t shared[];
  __shared__ RingBarriers<T> barriers;
  Ring<T> ring = make_ring<T>(shared, barriers, a, b, {});
  __syncthreads();
  let_next_kernel_start();
  wait_for_kernel_before();

  static_assert(T::kConsumers == 2 && !T::kTf32);
  const int warpgroup = warpgroup_index();
  const int tiles = order.row_tiles * order.column_tiles;
  if (warpgroup == 0) {
    give_up_registers<88>();
    const int warp = __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x) / 32, 0);
    if (warp == 0) {
      for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
        const int2 at = order(tile);
        produce_rounded(ring, a, b, at.x * T::kRows, at.y * T::kColumns, blocks, rounding);
      }
    } else {
      round_rest<T::kAlongA, T::kAlongB>(rounding);
    }
  } else {
    take_registers<208>();
    const int consumer = warpgroup - 1;
    const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    const int thread_row = consumer * 64 + row_of_thread<T>(thread);
    float d[T::kColumns / 2];
    for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
      const int2 at = order(tile);
      consume(ring, d, consumer, thread, blocks, blocks);
      store<T, false>(d, out, at.x * T::kRows, at.y * T::kColumns, thread_row, thread % 4 * 2);
    }
  }
#endif
}

}  // namespace gpunn::cuda_tiled
