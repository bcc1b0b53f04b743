// The core of the fast fp32 matrix products: a thread block multiplies a tile of a by a tile of b, from shared memory
// into registers. Two loaders bring the tiles (matrix_loader.cuh), and the caller stores the sums. The convolutions'
// counterpart is conv/tile_product.cuh.
#pragma once

#include <type_traits>

#include "async_copy.cuh"

namespace gpunn::cuda_tiled {

struct BlockTile {
  int m, n, k;
};
struct PartTile {
  int m, n;
};

// The parameters of a kernel of this core.
struct GemmTile {
  BlockTile block;       // a block makes m x n sums, k products of each at a time
  PartTile warp;         // of which a warp makes these,
  PartTile thread;       // and a thread these
  int stages;            // tiles in shared memory
  int slices = 1;        // groups of warps that make the same sums, each over its share of every block.k
  int min_blocks = 1;    // that a multiprocessor is to hold at once
  int strip = 4;         // columns, in the order of a thread's products
  bool settled = false;  // see settle_sums
};

// The constants that follow from the parameters.
template <GemmTile tile>
struct TileShape {
  static constexpr int kBlockM = tile.block.m;
  static constexpr int kBlockN = tile.block.n;
  static constexpr int kBlockK = tile.block.k;
  static constexpr int kWarpM = tile.warp.m;
  static constexpr int kWarpN = tile.warp.n;
  static constexpr int kThreadM = tile.thread.m;
  static constexpr int kThreadN = tile.thread.n;
  static constexpr int kStages = tile.stages;
  static constexpr int kSlices = tile.slices;
  static constexpr int kMinBlocks = tile.min_blocks;
  static constexpr int kStrip = tile.strip;
  static constexpr bool kSettled = tile.settled;
  static constexpr int kLanesM = kWarpM / kThreadM;
  static constexpr int kLanesN = kWarpN / kThreadN;
  static constexpr int kWarps = kBlockM / kWarpM * (kBlockN / kWarpN);  // of a slice
  static constexpr int kThreads = kWarps * kSlices * 32;
  // Rows of a tile in shared memory, which holds it as [k][m] or [k][n]. The 4 floats more make a store of 8
  // neighbours in k and 4 in m, as a transposing copy has, hit 32 different banks.
  static constexpr int kStrideM = kBlockM + 4;
  static constexpr int kStrideN = kBlockN + 4;
  static constexpr int kTileA = kBlockK * kStrideM;
  static constexpr int kTileB = kBlockK * kStrideN;
  static constexpr int kPipelineFloats = kStages * (kTileA + kTileB);
  static constexpr int kReductionFloats = (kSlices - 1) * kBlockM * kBlockN;
  static constexpr int kSharedBytes = 4 * (kPipelineFloats > kReductionFloats ? kPipelineFloats : kReductionFloats);
  static_assert(kLanesM * kLanesN == 32);
  static_assert(kThreadM % 4 == 0 && kThreadN % 4 == 0);
  static_assert(kBlockK % 8 == 0 && kBlockK % (2 * kSlices) == 0 && kBlockM % kWarpM == 0 && kBlockN % kWarpN == 0);
  static_assert(kStages >= 2 && kThreadN % kStrip == 0);
};

// The position of a thread's sums in the block's tile: those of i = 0...ThreadM-1 in groups of four, at row(i); the
// columns likewise.
template <class Shape>
struct ThreadPlace {
  int warp_row;
  int warp_column;
  int lane_row;
  int lane_column;
  int slice;

  __device__ explicit ThreadPlace(int thread) {
    const int warp = thread / 32 % Shape::kWarps;
    const int lane = thread % 32;
    slice = thread / 32 / Shape::kWarps;
    warp_row = warp / (Shape::kBlockN / Shape::kWarpN) * Shape::kWarpM;
    warp_column = warp % (Shape::kBlockN / Shape::kWarpN) * Shape::kWarpN;
    // Shared memory serves 16 lanes of a 16-byte load at a time if they touch at most 8 different quads, so the first
    // half of a warp must be 2 x 8 lanes and not 1 x 16: the lowest bit of the lane is one of the row's.
    if constexpr (Shape::kLanesM == 1) {
      lane_row = 0;
      lane_column = lane;
    } else {
      lane_row = (lane & 1) | (lane / (2 * Shape::kLanesN) << 1);
      lane_column = lane / 2 % Shape::kLanesN;
    }
  }
  __device__ int row(int i) const { return warp_row + i / 4 * (4 * Shape::kLanesM) + lane_row * 4 + i % 4; }
  __device__ int column(int j) const { return warp_column + j / 4 * (4 * Shape::kLanesN) + lane_column * 4 + j % 4; }
};

template <class Shape>
struct Fragments {
  float a[Shape::kThreadM];
  float b[Shape::kThreadN];

  // Row k of both tiles.
  __device__ __forceinline__ void load(const float* tile_a, const float* tile_b, int k) {
#pragma unroll
    for (int i = 0; i < Shape::kThreadM; i += 4) {
      *reinterpret_cast<float4*>(a + i) =
          *reinterpret_cast<const float4*>(tile_a + k * Shape::kStrideM + i * Shape::kLanesM);
    }
#pragma unroll
    for (int j = 0; j < Shape::kThreadN; j += 4) {
      *reinterpret_cast<float4*>(b + j) =
          *reinterpret_cast<const float4*>(tile_b + k * Shape::kStrideN + j * Shape::kLanesN);
    }
  }
};

// The outer product of the fragments, strip by strip of columns, to and fro: of two successive products one factor is
// the same, which the GPU keeps in its operand cache. It reads one word a cycle from each of the two banks of the
// register file, so a product that needs a new factor, or two, from the bank of its sum takes a cycle more. The
// compiler chooses the registers; how well it does depends on the width of the strips, and only measurements tell.
template <class Shape>
__device__ __forceinline__ void multiply(const Fragments<Shape>& f, float (&sums)[Shape::kThreadM][Shape::kThreadN]) {
#pragma unroll
  for (int product = 0; product < Shape::kThreadM * Shape::kThreadN; ++product) {
    const int strip = product / (Shape::kStrip * Shape::kThreadM);
    const int down = product / Shape::kStrip % Shape::kThreadM;
    const int across = product % Shape::kStrip;
    const int i = strip % 2 == 0 ? down : Shape::kThreadM - 1 - down;
    const int j = strip * Shape::kStrip + (down % 2 == 0 ? across : Shape::kStrip - 1 - across);
    sums[i][j] += f.a[i] * f.b[j];
  }
}

template <class Shape>
__device__ __forceinline__ void clear_sums(float (&sums)[Shape::kThreadM][Shape::kThreadN]) {
#pragma unroll
  for (int i = 0; i < Shape::kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < Shape::kThreadN; ++j) sums[i][j] = 0.0F;
  }
}

// A thread's sums, written to shared memory one by one and read back by itself. Nothing comes of it but registers: what
// is stored by quads has to lie in registers by quads, and a compiler that decides so before the loop leaves many a
// product there waiting for a bank. One by one they lie where the loop wants them. Whether that is worth it only
// measurements tell: of 512 products of gemm:7 151 waited and 74 do where no operand passes through registers (1024^3
// tn on an H200: 53.0 and 49.9 us), of the other transposes more.
template <class Shape>
__device__ __forceinline__ void settle_sums(float* shared, float (&sums)[Shape::kThreadM][Shape::kThreadN]) {
  constexpr int kSums = Shape::kThreadM * Shape::kThreadN;
  constexpr int kRoom = Shape::kSharedBytes / 4 / Shape::kThreads;
  constexpr int kRound = kRoom >= kSums ? kSums : kRoom >= 32 ? 32 : 16;
  static_assert(kSums % kRound == 0 && kRoom >= kRound);
  __syncthreads();
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(shared)) + threadIdx.x * 4;
#pragma unroll
  for (int first = 0; first < kSums; first += kRound) {
    // Volatile, or the compiler would see that nothing comes of it.
#pragma unroll
    for (int i = 0; i < kRound; ++i) {
      const float& sum = sums[(first + i) / Shape::kThreadN][(first + i) % Shape::kThreadN];
      asm volatile("st.shared.f32 [%0], %1;" ::"r"(place + i * Shape::kThreads * 4), "f"(sum) : "memory");
    }
#pragma unroll
    for (int i = 0; i < kRound; ++i) {
      float& sum = sums[(first + i) / Shape::kThreadN][(first + i) % Shape::kThreadN];
      asm volatile("ld.shared.f32 %0, [%1];" : "=f"(sum) : "r"(place + i * Shape::kThreads * 4) : "memory");
    }
  }
}

// The loads in flight: the stages of the first tiles.
template <class Shape, class LoadA, class LoadB>
__device__ __forceinline__ void start_tiles(float* shared, int tiles, LoadA& load_a, LoadB& load_b) {
  float* const shared_a = shared;
  float* const shared_b = shared + Shape::kStages * Shape::kTileA;
  decltype(load_a.start(shared)) held_a[Shape::kStages - 1];
  decltype(load_b.start(shared)) held_b[Shape::kStages - 1];
#pragma unroll
  for (int stage = 0; stage < Shape::kStages - 1; ++stage) {
    if (stage < tiles) {
      held_a[stage] = load_a.start(shared_a + stage * Shape::kTileA);
      held_b[stage] = load_b.start(shared_b + stage * Shape::kTileB);
    }
    commit_copies();
  }
#pragma unroll
  for (int stage = 0; stage < Shape::kStages - 1; ++stage) {
    if (stage < tiles) {
      load_a.finish(shared_a + stage * Shape::kTileA, held_a[stage]);
      load_b.finish(shared_b + stage * Shape::kTileB, held_b[stage]);
    }
  }
}

// sums[i][j] += the products of this thread's rows and columns over the tiles that start_tiles began to fetch.
template <class Shape, class LoadA, class LoadB>
__device__ __forceinline__ void multiply_tiles(const ThreadPlace<Shape>& place, float* shared, int tiles, LoadA& load_a,
                                               LoadB& load_b, float (&sums)[Shape::kThreadM][Shape::kThreadN]) {
  constexpr int kSteps = Shape::kBlockK / Shape::kSlices;
  float* const shared_a = shared;
  float* const shared_b = shared + Shape::kStages * Shape::kTileA;
  const float* const thread_a = shared_a + place.slice * kSteps * Shape::kStrideM + place.row(0);
  const float* const thread_b = shared_b + place.slice * kSteps * Shape::kStrideN + place.column(0);
  decltype(load_a.start(shared)) held_a;
  decltype(load_b.start(shared)) held_b;
  Fragments<Shape> fragments[2];
  wait_copies<Shape::kStages - 2>();
  __syncthreads();
  fragments[0].load(thread_a, thread_b, 0);

  int read_stage = 0;
  int write_stage = Shape::kStages - 1;
  const float* tile_a = thread_a;
  const float* tile_b = thread_b;
  for (int tile = 0; tile < tiles; ++tile) {
    const bool more = tile + Shape::kStages - 1 < tiles;
    float* const next_a = shared_a + write_stage * Shape::kTileA;
    float* const next_b = shared_b + write_stage * Shape::kTileB;
    if (more) {
      held_a = load_a.start(next_a);
      held_b = load_b.start(next_b);
      // This tile's products are to cover the latency of loads into registers. Copies write shared memory, so that the
      // compiler leaves the reads for those products behind them; where there are none it would move the products in
      // front of the loads, but for a barrier of the warp, at which no thread waits.
      if constexpr (!std::is_empty_v<decltype(held_a)> && !std::is_empty_v<decltype(held_b)>) __syncwarp();
    }
    commit_copies();
    write_stage = write_stage == Shape::kStages - 1 ? 0 : write_stage + 1;
    // At most 8 steps are written out, or the loop would outgrow the instruction cache.
    constexpr int kWritten = kSteps < 8 ? kSteps : 8;
#pragma unroll 1
    for (int first = 0; first < kSteps; first += kWritten) {
#pragma unroll
      for (int step = 0; step < kWritten; ++step) {
        int next = step + 1;
        if (step == kWritten - 1) {
          tile_a += kWritten * Shape::kStrideM;
          tile_b += kWritten * Shape::kStrideN;
          next = 0;
          if (first + kWritten == kSteps) {
            // The next tile must be there, and all must be through with this one, whose place is filled next.
            if (more) {
              load_a.finish(next_a, held_a);
              load_b.finish(next_b, held_b);
            }
            wait_copies<Shape::kStages - 2>();
            __syncthreads();
            read_stage = read_stage == Shape::kStages - 1 ? 0 : read_stage + 1;
            tile_a = thread_a + read_stage * Shape::kTileA;
            tile_b = thread_b + read_stage * Shape::kTileB;
          }
        }
        // The fragments of the next step are on their way while this one computes. (After the last tile they are of
        // no use, but in bounds.)
        fragments[(step + 1) % 2].load(tile_a, tile_b, next);
        multiply<Shape>(fragments[step % 2], sums);
      }
    }
  }
  wait_copies<0>();
}

// sums[i][j] = the products of this thread's rows and columns over tiles 0...tiles-1, in the steps of its slice.
// `shared` has kSharedBytes, aligned to 16. A loader's start(shared) begins to fetch its next tile, which the block
// wants as shared[k * kStrideM + m], of b as shared[k * kStrideN + n]: by copy_async, or into registers, which it
// returns and which finish(shared, them) stores, later and for the same tile. A loader of which nothing is left to
// finish returns NothingHeld.
template <class Shape, class LoadA, class LoadB>
__device__ __forceinline__ void slice_tile(const ThreadPlace<Shape>& place, float* shared, int tiles, LoadA& load_a,
                                           LoadB& load_b, float (&sums)[Shape::kThreadM][Shape::kThreadN]) {
  clear_sums<Shape>(sums);
  start_tiles<Shape>(shared, tiles, load_a, load_b);
  multiply_tiles<Shape>(place, shared, tiles, load_a, load_b, sums);
}

// The same, but slice 0 gets the sums over the steps of all slices.
template <class Shape, class LoadA, class LoadB>
__device__ __forceinline__ void register_tile(const ThreadPlace<Shape>& place, float* shared, int tiles, LoadA& load_a,
                                              LoadB& load_b, float (&sums)[Shape::kThreadM][Shape::kThreadN]) {
  slice_tile<Shape>(place, shared, tiles, load_a, load_b, sums);
  if constexpr (Shape::kSettled) settle_sums<Shape>(shared, sums);

  if constexpr (Shape::kSlices > 1) {
    // Slice 0 gets the sums of the others, added in their order.
    __syncthreads();
    constexpr int kSliceThreads = Shape::kWarps * 32;
    const int thread = static_cast<int>(threadIdx.x) % kSliceThreads;
    if (place.slice > 0) {
      float* const to = shared + (place.slice - 1) * Shape::kBlockM * Shape::kBlockN + thread * 4;
#pragma unroll
      for (int i = 0; i < Shape::kThreadM; ++i) {
#pragma unroll
        for (int j = 0; j < Shape::kThreadN; j += 4) {
          *reinterpret_cast<float4*>(to + (i * Shape::kThreadN + j) * kSliceThreads) =
              make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
        }
      }
    }
    __syncthreads();
    if (place.slice == 0) {
#pragma unroll
      for (int slice = 1; slice < Shape::kSlices; ++slice) {
        const float* const from = shared + (slice - 1) * Shape::kBlockM * Shape::kBlockN + thread * 4;
#pragma unroll
        for (int i = 0; i < Shape::kThreadM; ++i) {
#pragma unroll
          for (int j = 0; j < Shape::kThreadN; j += 4) {
            const float4 other = *reinterpret_cast<const float4*>(from + (i * Shape::kThreadN + j) * kSliceThreads);
            sums[i][j] += other.x;
            sums[i][j + 1] += other.y;
            sums[i][j + 2] += other.z;
            sums[i][j + 3] += other.w;
          }
        }
      }
    }
  }
}

}  // namespace gpunn::cuda_tiled
