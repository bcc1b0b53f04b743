// Building blocks of the GEMM ladder's Hopper kernels. The tensor memory accelerator (TMA) brings tiles through a ring
// of stages in shared memory, wgmma multiplies them, and the epilogue stores the sums with bias and ReLU.
//
// A kernel computes y' = a' b'^T for an a' of `rows` and a b' of `columns`, in tiles of kRows x kColumns, with K in
// blocks of 128 bytes. One thread of its first warpgroup (128 threads) fills the ring. Each of the other warpgroups
// multiplies 64 rows of the tile. (NVIDIA's CUTLASS calls this a warp-specialised cooperative kernel.)
//
// The contiguous index of the operands differs:
//   K-major            wgmma reads it directly from shared memory.
//   MN-major in BF16   wgmma can read that too.
//   MN-major in TF32   wgmma can't. But a' may come from registers, into which each thread loads its elements from this
//                      layout. If b is MN-major, the kernel computes y^T = op(b)^T op(a)^T with b as a', and the
//                      epilogue stores transposed.
//
// Rounding to the nearest TF32 costs nothing: TMA does it if the tensor map says so. The errors against float64 equal
// those of mma.sync's rounded fragments: 2.9e-4, and 2.3e-3 in BF16.
#pragma once

#include <cstdint>

#include "dependent_launch.cuh"
#include "epilogue.cuh"
#include "gemm/mask_epilogue.cuh"
#include "gemm/wgmma/major.hpp"
#include "gemm/wgmma/tensor_map.hpp"
#include "gemm/wgmma/wgmma_instructions.cuh"

namespace gpunn::cuda_tiled {

enum class Element : uint8_t { kTf32, kBf16 };

// The types and layouts of a' and b'.
struct WgmmaOperands {
  Element element;
  Major a, b;

  constexpr int block_k() const { return element == Element::kTf32 ? 32 : 64; }  // numbers of 128 bytes
};

struct WgmmaTile {
  WgmmaOperands operands;
  int consumers;  // warpgroups, each of 64 rows
  int columns;
  int stages;
};

inline constexpr int kWarpgroup = 128;  // threads

template <WgmmaTile tile>
struct Tiling {
  static constexpr bool kTf32 = tile.operands.element == Element::kTf32;
  static constexpr Major kMajorA = tile.operands.a, kMajorB = tile.operands.b;
  static constexpr int kConsumers = tile.consumers;
  static constexpr int kRows = 64 * kConsumers;
  static constexpr int kColumns = tile.columns;
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr int kReaders = kConsumers * kWarpgroup / 32;  // warps that read a stage
  static constexpr int kStages = tile.stages;
  static constexpr int kBlockK = tile.operands.block_k();
  static constexpr int kBytesA = kRows * kLineBytes;
  static constexpr int kBytesB = kColumns * kLineBytes;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  static constexpr int kColumnBytes = kBlockK * kLineBytes;  // of a box that has K as its rows
  static constexpr bool kRegisterA = kTf32 && kMajorA == Major::kMN;
  static_assert(!kTf32 || kMajorB == Major::kK);
  // The swizzle wants stages at multiples of 1024 bytes, which dynamic shared memory doesn't promise.
  static constexpr int kSharedBytes = kStages * kStageBytes + 1024;
};

// The blocks of a cluster that need the same tile of an operand: each brings its share of it to all.
struct Sharing {
  int count = 1;
  int index = 0;       // of this block among them
  int first_rank = 0;  // in the cluster
  int rank_step = 1;

  __device__ __forceinline__ int rank(int i) const { return first_rank + i * rank_step; }
  // As a multicast names them; 0: this block alone.
  __device__ __forceinline__ uint16_t blocks() const {
    uint16_t mask = 0;
    for (int i = 0; count > 1 && i < count; ++i) mask |= static_cast<uint16_t>(1U << rank(i));
    return mask;
  }
};

// The blocks that share a tile of a have the same rows, those that share a tile of b the same columns; all have the
// same K.
struct TileSharing {
  Sharing a, b;
  __device__ __forceinline__ int count() const { return a.count + b.count - 1; }
  // The ranks of the blocks that this one brings something, itself included.
  __device__ __forceinline__ int rank(int i) const {
    if (i < b.count) return b.rank(i);
    i -= b.count;
    return a.rank(i < a.index ? i : i + 1);
  }
};

// The ring of stages. `full` ends a phase when a stage's bytes are there, `empty` when all who read it have done so.
template <class T>
struct Ring {
  uint8_t* stages;
  uint64_t* full;
  uint64_t* empty;
  TileSharing sharing;
  int stage = 0;
  uint32_t phase = 0;

  __device__ __forceinline__ uint8_t* a() const { return stages + stage * T::kStageBytes; }
  __device__ __forceinline__ uint8_t* b() const { return a() + T::kBytesA; }
  __device__ __forceinline__ void advance() {
    if (++stage == T::kStages) {
      stage = 0;
      phase ^= 1U;
    }
  }
  // Over stages that others read.
  __device__ __forceinline__ void pass(int stages) {
    const int rounds = (stage + stages) / T::kStages;
    stage += stages - rounds * T::kStages;
    phase ^= static_cast<uint32_t>(rounds) & 1U;
  }
};

template <class T>
struct RingBarriers {
  uint64_t full[T::kStages];
  uint64_t empty[T::kStages];
};

template <class T>
__device__ __forceinline__ Ring<T> make_ring(uint8_t* shared, RingBarriers<T>& barriers, const CUtensorMap& a,
                                             const CUtensorMap& b, const TileSharing& sharing) {
  if (threadIdx.x == 0) {
    prefetch_tensor_map(&a);
    prefetch_tensor_map(&b);
    for (int i = 0; i < T::kStages; ++i) {
      barrier_init(&barriers.full[i], 1);
      barrier_init(&barriers.empty[i], T::kReaders * sharing.count());
    }
    fence_barrier_init();
  }
  const uint32_t misaligned = shared_address(shared) % 1024;
  return {.stages = shared + (misaligned == 0 ? 0 : 1024 - misaligned),
          .full = barriers.full,
          .empty = barriers.empty,
          .sharing = sharing};
}

// Waits until the ring is ready in the `share` blocks that copy into it, and then for the kernel before.
__device__ __forceinline__ void begin_ring(int share) {
  if (share == 1)
    __syncthreads();
  else
    cluster_sync();
  let_next_kernel_start();
  wait_for_kernel_before();
}

// So that the compiler sees that it is the same for all threads of a warp.
__device__ __forceinline__ int warpgroup_index() {
  return __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
}

// `lines` lines (or columns of lines) of an operand, to this block or, with `blocks`, to those.
template <class T, Major kMajor>
__device__ __forceinline__ void copy_operand(uint8_t* to, const CUtensorMap& map, uint64_t* barrier, int k, int outer,
                                             int lines, uint16_t blocks) {
  const auto copy = [&](uint8_t* box, int x, int y) {
    if (blocks == 0)
      copy_box(box, &map, barrier, x, y);
    else
      copy_box_to(blocks, box, &map, barrier, x, y);
  };
  if constexpr (kMajor == Major::kK) {
    copy(to, k, outer);
  } else {
    constexpr int kWidth = T::kBlockK;  // numbers of a line
    for (int i = 0; i < lines / kWidth; ++i) copy(to + i * T::kColumnBytes, outer + i * kWidth, k);
  }
}

// Fills the ring with the tile at (row, column), K blocks first..last. Called by one thread.
template <class T>
__device__ __forceinline__ void produce(Ring<T>& ring, const CUtensorMap& a, const CUtensorMap& b, int row, int column,
                                        int first, int last) {
  const TileSharing& sharing = ring.sharing;
  const int lines_a = T::kRows / sharing.a.count, lines_b = T::kColumns / sharing.b.count;
  const int line_a = lines_a * sharing.a.index, line_b = lines_b * sharing.b.index;
  const uint16_t with_a = sharing.a.blocks(), with_b = sharing.b.blocks();
  for (int block = first; block < last; ++block) {
    barrier_wait(&ring.empty[ring.stage], ring.phase ^ 1U);
    uint64_t* full = &ring.full[ring.stage];
    barrier_expect(full, T::kStageBytes);
    copy_operand<T, T::kMajorA>(ring.a() + line_a * kLineBytes, a, full, block * T::kBlockK, row + line_a, lines_a,
                                with_a);
    copy_operand<T, T::kMajorB>(ring.b() + line_b * kLineBytes, b, full, block * T::kBlockK, column + line_b, lines_b,
                                with_b);
    ring.advance();
  }
}

// The row, among a warpgroup's 64, of d[0] of a thread; d[2] is `kRowStep` further. Where a comes from registers any
// assignment of rows to threads will do, and this one lets a thread load two neighbours at once with no bank conflict:
// lines are K, 32 rows wide, and of a line's eight 16-byte chunks those that a half-warp reads at four K, chunk c of
// line k at c ^ (k % 8), are all different only if c differs by 4.
template <class T>
inline constexpr int kRowStep = T::kRegisterA ? 1 : 8;

template <class T>
__device__ __forceinline__ int row_of_thread(int thread) {
  const int warp = thread / 32, group = thread % 32 / 4;
  if constexpr (!T::kRegisterA) return warp * 16 + group;
  const int chunk = warp % 2 * 2 + group / 4 + group / 2 % 2 * 4;
  return warp / 2 * 32 + chunk * 4 + group % 2 * 2;
}

// A stage's a of this thread in wgmma's order: rows r, r + 1 at K t and t + 4 of each 8.
__device__ __forceinline__ void load_fragments(uint32_t (&a)[4][4], const uint8_t* tile, int row, int thread) {
  const uint8_t* column = tile + row / 32 * (32 * kLineBytes);
  const int chunk = row % 32 / 4;
#pragma unroll
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int line = thread % 4 + half * 4;
      const uint2 pair =
          *reinterpret_cast<const uint2*>(column + (step * 8 + line) * kLineBytes + (chunk ^ line) * 16 + row % 4 * 4);
      a[step][half * 2] = pair.x;
      a[step][half * 2 + 1] = pair.y;
    }
  }
}

template <class T>
__device__ __forceinline__ void multiply_stage(float (&d)[T::kColumns / 2], const uint8_t* a, const uint8_t* b,
                                               bool accumulate) {
  // K of 32 bytes a step: along a line that far, across lines as many lines as there are numbers.
  constexpr int kStepA = T::kMajorA == Major::kK ? 32 : T::kBlockK / 4 * kLineBytes;
  constexpr int kStepB = T::kMajorB == Major::kK ? 32 : T::kBlockK / 4 * kLineBytes;
  const uint64_t from_a = tile_descriptor(a, T::kColumnBytes), from_b = tile_descriptor(b, T::kColumnBytes);
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    // A descriptor's lowest bits are the address in units of 16 bytes.
    const uint64_t step_a = from_a + static_cast<unsigned>(step * kStepA / 16);
    const uint64_t step_b = from_b + static_cast<unsigned>(step * kStepB / 16);
    if constexpr (T::kTf32)
      wgmma_tf32(d, step_a, step_b, accumulate || step > 0);
    else
      wgmma_bf16<T::kMajorA == Major::kMN, T::kMajorB == Major::kMN>(d, step_a, step_b, accumulate || step > 0);
  }
}

// Tells all threads that fill the stage that this warp has read it.
template <class T>
__device__ __forceinline__ void release(const Ring<T>& ring, int stage, int thread) {
  const TileSharing& sharing = ring.sharing;
  const int lane = thread % 32;
  if (sharing.count() == 1) {
    if (lane == 0) barrier_arrive(&ring.empty[stage]);
  } else if (lane < sharing.count()) {
    barrier_arrive(&ring.empty[stage], static_cast<uint32_t>(sharing.rank(lane)));
  }
}

// d = the sum over `blocks` stages, of which the first `released` are filled again. One warpgroup; `thread` is of it.
template <class T>
__device__ __forceinline__ void consume(Ring<T>& ring, float (&d)[T::kColumns / 2], int consumer, int thread,
                                        int blocks, int released) {
  if constexpr (T::kRegisterA) {
    // The other warpgroup's products run while this one loads.
    uint32_t a[4][4];
    const int row = row_of_thread<T>(thread);
    for (int block = 0; block < blocks; ++block) {
      barrier_wait(&ring.full[ring.stage], ring.phase);
      load_fragments(a, ring.a() + consumer * 2 * (32 * kLineBytes), row, thread);
      const uint64_t b = tile_descriptor(ring.b(), 0);
      warpgroup_arrive();
#pragma unroll
      for (int step = 0; step < 4; ++step) {
        wgmma_tf32(d, a[step], b + static_cast<unsigned>(step * 32 / 16), block > 0 || step > 0);
      }
      warpgroup_commit();
      warpgroup_wait<0>();
      if (block < released) release(ring, ring.stage, thread);
      ring.advance();
    }
  } else {
    int previous = 0;
    for (int block = 0; block < blocks; ++block) {
      barrier_wait(&ring.full[ring.stage], ring.phase);
      warpgroup_arrive();
      multiply_stage<T>(d, ring.a() + consumer * 64 * kLineBytes, ring.b(), block > 0);
      warpgroup_commit();
      warpgroup_wait<1>();  // the previous stage has been read
      if (block > 0 && block <= released) release(ring, previous, thread);
      previous = ring.stage;
      ring.advance();
    }
    warpgroup_wait<0>();
    if (blocks <= released) release(ring, previous, thread);
  }
}

// The epilogue's arguments. y' is y, or its transpose if the kernel computes y transposed.
struct WgmmaOutput {
  float* y;
  int rows;     // of y'
  int columns;  // of y'
  Epilogue epilogue;
  MaskEpilogue mask = {};  // of kernels that have it (masked.hpp), in place of the other
};

// Stores neighbours of y, of which at least the first is inside.
__device__ __forceinline__ void store_pair(float* y, float2 sums, bool both) {
  y[0] = sums.x;
  if (both) y[1] = sums.y;
}

// Streaming leaves L2 to the operands; volatile keeps the compiler from computing all addresses first.
__device__ __forceinline__ void store_quad(float* y, float4 sums) {
  asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(y), "f"(sums.x), "f"(sums.y), "f"(sums.z),
               "f"(sums.w)
               : "memory");
}

// Two lanes, `kLanes` apart, have neighbouring pairs in each of two places. Of the first place the lower lane gets all
// four numbers, of the second the upper one.
template <int kLanes>
__device__ __forceinline__ float4 exchange(float2 first, float2 second) {
  const bool upper = (threadIdx.x & kLanes) != 0;
  const float2 kept = upper ? second : first, sent = upper ? first : second;
  const float2 got =
      make_float2(__shfl_xor_sync(0xFFFFFFFFU, sent.x, kLanes), __shfl_xor_sync(0xFFFFFFFFU, sent.y, kLanes));
  return upper ? make_float4(got.x, got.y, kept.x, kept.y) : make_float4(kept.x, kept.y, got.x, got.y);
}

// Where y is y', d[0] and d[1] are neighbours, and the bias is the columns'. Unless guarded, neighbouring lanes
// exchange, so that each stores 16 bytes: half the stores, and 64 bytes of each row at a time. H200: 2048^3 in BF16 in
// 26.0 us instead of 27.5.
template <class T, bool kGuarded>
__device__ __forceinline__ void store_straight(const float (&d)[T::kColumns / 2], const WgmmaOutput& out, int row,
                                               int column) {
  const Epilogue& epilogue = out.epilogue;
  const bool in_upper = !kGuarded || row < out.rows, in_lower = !kGuarded || row + kRowStep<T> < out.rows;
  const auto finished = [&](int j, int half, bool both) {
    const int at = column + j * 8;
    float bias0 = 0.0F, bias1 = 0.0F;
    if (epilogue.bias != nullptr) {
      bias0 = epilogue.bias[at];
      if (both) bias1 = epilogue.bias[at + 1];
    }
    return make_float2(finish(epilogue, d[j * 4 + half], bias0), finish(epilogue, d[j * 4 + half + 1], bias1));
  };
  float* upper = out.y + int64_t{row} * out.columns + column;
  float* lower = upper + int64_t{kRowStep<T>} * out.columns;
  if constexpr (kGuarded) {
#pragma unroll
    for (int j = 0; j < T::kColumns / 8; ++j) {
      if (column + j * 8 >= out.columns) break;
      const bool both = column + j * 8 + 1 < out.columns;
      if (in_upper) store_pair(upper + j * 8, finished(j, 0, both), both);
      if (in_lower) store_pair(lower + j * 8, finished(j, 2, both), both);
    }
  } else {
    const int shift = (threadIdx.x & 1U) != 0 ? 8 - 2 : 0;
    upper += shift;
    lower += shift;
#pragma unroll
    for (int j = 0; j < T::kColumns / 8; j += 2) {
      store_quad(upper + j * 8, exchange<1>(finished(j, 0, true), finished(j + 1, 0, true)));
      store_quad(lower + j * 8, exchange<1>(finished(j, 2, true), finished(j + 1, 2, true)));
    }
  }
}

// Where y is the transpose of y', d[0] and d[2] are neighbours, as are their rows and those of the lane 4 further, and
// the bias is the rows'.
template <class T, bool kGuarded>
__device__ __forceinline__ void store_transposed(const float (&d)[T::kColumns / 2], const WgmmaOutput& out, int row,
                                                 int column) {
  static_assert(kRowStep<T> == 1);
  const Epilogue& epilogue = out.epilogue;
  if (kGuarded && row >= out.rows) return;
  const bool both = !kGuarded || row + 1 < out.rows;
  float bias0 = 0.0F, bias1 = 0.0F;
  if (epilogue.bias != nullptr) {
    bias0 = epilogue.bias[row];
    if (both) bias1 = epilogue.bias[row + 1];
  }
  const auto finished = [&](int j, int i) {
    return make_float2(finish(epilogue, d[j * 4 + i], bias0), finish(epilogue, d[j * 4 + 2 + i], bias1));
  };
  // Opaque, or the compiler would compute the multiples of it once for all tiles, and keep them in local memory.
  int64_t pitch = out.rows;
  asm volatile("" : "+l"(pitch));
  float* y = out.y + column * pitch + row;
  if constexpr (kGuarded) {
#pragma unroll
    for (int j = 0; j < T::kColumns / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (column + j * 8 + i >= out.columns) break;
        store_pair(y + i * pitch, finished(j, i), both);
      }
      y += 8 * pitch;
    }
  } else {
    if ((threadIdx.x & 4U) != 0) y += pitch - 2;
#pragma unroll
    for (int j = 0; j < T::kColumns / 8; ++j) {
      store_quad(y, exchange<4>(finished(j, 0), finished(j, 1)));
      y += 8 * pitch;
    }
  }
}

// Stores a warpgroup's sums; those of the tile begin at (row, column), those of this thread at (thread_row,
// thread_column) of the tile.
template <class T, bool kTransposed>
__device__ __forceinline__ void store(const float (&d)[T::kColumns / 2], const WgmmaOutput& out, int row, int column,
                                      int thread_row, int thread_column) {
  const bool inside = row + T::kRows <= out.rows && column + T::kColumns <= out.columns &&
                      (kTransposed ? out.rows : out.columns) % 4 == 0;
  row += thread_row;
  column += thread_column;
  if constexpr (kTransposed) {
    inside ? store_transposed<T, false>(d, out, row, column) : store_transposed<T, true>(d, out, row, column);
  } else {
    inside ? store_straight<T, false>(d, out, row, column) : store_straight<T, true>(d, out, row, column);
  }
}

}  // namespace gpunn::cuda_tiled
