// gemm:4, matrix product with asynchronous copies in several stages.
//
// gemm:3 holds the next tile in registers and stops twice a tile, to fill shared memory and to empty it. Here the
// copies bypass the registers (cp.async) and fill a ring of four tiles. Three tiles are in flight while one is
// multiplied, one barrier a tile suffices, and the registers are free for sums. Operands whose k is contiguous are
// transposed by copies of 4 bytes, each to its final position, so any row length is served.
//
// H200: 4096^3 in 3.42 ms, 40.2 TFLOP/s: 0.88 times gemm:3. Four copies of 4 bytes cost more than one load of 16, and
// the scattered ones have bank conflicts. The ring and the free registers pay off in gemm:5, which copies 16 bytes at a
// time.
#include <cstdint>

#include <cuda_pipeline_primitives.h>

#include "cuda_common/launch.hpp"
#include "gemm/gemm_arguments.cuh"
#include "gemm/gemm_variants.hpp"
#include "gemm/launch_gemm.hpp"

namespace gpunn::cuda_tiled {
namespace {

struct AsyncCopies {
  static constexpr int kBlock = 128;
  static constexpr int kDepth = 8;
  static constexpr int kStages = 4;
  static constexpr int kSide = 16;
  static constexpr int kThreads = kSide * kSide;
  static constexpr int kStride = kBlock + 4;
  static constexpr int kTile = kDepth * kStride;
  static constexpr int kSharedBytes = 2 * kStages * kTile * 4;
};

// A thread's copies from a matrix [k, outer], or from [outer, k] where KMajor, to tiles [k][outer], one tile after the
// other. Numbers outside of the matrix become zeros.
template <bool KMajor>
class TileCopies {
  using T = AsyncCopies;
  static constexpr int kRow = KMajor ? T::kDepth : T::kBlock;  // numbers of a tile that are neighbours in memory
  static constexpr int kRows = T::kThreads / kRow;             // that the block copies at a time
  static constexpr int kPasses = T::kBlock * T::kDepth / T::kThreads;

 public:
  __device__ __forceinline__ TileCopies(const float* matrix, int outer, int size_k, int first_outer)
      : k_(static_cast<int>(KMajor ? threadIdx.x % kRow : threadIdx.x / kRow)),
        outer_(static_cast<int>(KMajor ? threadIdx.x / kRow : threadIdx.x % kRow)),
        left_k_(size_k),
        left_outer_(outer - first_outer),
        row_(KMajor ? size_k : outer),
        source_(matrix +
                (KMajor ? int64_t{first_outer + outer_} * row_ + k_ : int64_t{k_} * row_ + first_outer + outer_)) {}

  __device__ __forceinline__ void start(float* tile) {
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int k = k_ + (KMajor ? 0 : pass * kRows);
      const int outer = outer_ + (KMajor ? pass * kRows : 0);
      const bool inside = k < left_k_ && outer < left_outer_;
      __pipeline_memcpy_async(tile + k * T::kStride + outer, source_ + int64_t{pass} * kRows * row_, 4, inside ? 0 : 4);
    }
    source_ += KMajor ? T::kDepth : int64_t{T::kDepth} * row_;
    left_k_ -= T::kDepth;
  }

 private:
  int k_;
  int outer_;
  int left_k_;
  int left_outer_;
  int row_;
  const float* source_;
};

// grid: (columns of tiles, rows of tiles); block: 256
template <bool TransposeA, bool TransposeB>
__global__ void __launch_bounds__(AsyncCopies::kThreads, 2) async_copies_gemm(GemmArguments g) {
  using T = AsyncCopies;
  extern __shared__ __align__(16) float shared[];
  float* const tiles_a = shared;
  float* const tiles_b = shared + T::kStages * T::kTile;
  const int x = static_cast<int>(threadIdx.x) % T::kSide;
  const int y = static_cast<int>(threadIdx.x) / T::kSide;
  const int first_row = static_cast<int>(blockIdx.y) * T::kBlock;
  const int first_column = static_cast<int>(blockIdx.x) * T::kBlock;
  TileCopies<!TransposeA> copies_a(g.a, g.m, g.k, first_row);
  TileCopies<TransposeB> copies_b(g.b, g.n, g.k, first_column);
  const int tiles = cuda::divide_up(g.k, T::kDepth);
  for (int stage = 0; stage < T::kStages - 1; ++stage) {
    if (stage < tiles) {
      copies_a.start(tiles_a + stage * T::kTile);
      copies_b.start(tiles_b + stage * T::kTile);
    }
    __pipeline_commit();
  }
  float sums[8][8] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    __pipeline_wait_prior(T::kStages - 2);
    // Now this tile is there for all, and no thread is still at the one before, whose place is filled next.
    __syncthreads();
    if (const int next = tile + T::kStages - 1; next < tiles) {
      copies_a.start(tiles_a + next % T::kStages * T::kTile);
      copies_b.start(tiles_b + next % T::kStages * T::kTile);
    }
    __pipeline_commit();
    const float* const tile_a = tiles_a + tile % T::kStages * T::kTile;
    const float* const tile_b = tiles_b + tile % T::kStages * T::kTile;
#pragma unroll
    for (int k = 0; k < T::kDepth; ++k) {
      float a[8];
      float b[8];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int offset = k * T::kStride + half * T::kBlock / 2;
        *reinterpret_cast<float4*>(a + 4 * half) = *reinterpret_cast<const float4*>(tile_a + offset + y * 4);
        *reinterpret_cast<float4*>(b + 4 * half) = *reinterpret_cast<const float4*>(tile_b + offset + x * 4);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[i][j] += a[i] * b[j];
      }
    }
  }
#pragma unroll
  for (int j = 0; j < 8; j += 4) {
    const int column = first_column + j / 4 * (T::kBlock / 2) + x * 4;
    const float4 bias = bias_of_quad(g, column);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = first_row + i / 4 * (T::kBlock / 2) + y * 4 + i % 4;
      if (row < g.m) store_quad(g.y, g, row, column, finish_quad(g.epilogue, &sums[i][j], bias));
    }
  }
}

void run(const Gemm& problem, cudaStream_t stream, const OpArgs& args) {
  const GemmArguments g = arguments_of(problem, args);
  with_transposes(problem, [&]<bool TransposeA, bool TransposeB>() {
    launch(async_copies_gemm<TransposeA, TransposeB>,
           {dim3(cuda::grid_size(g.n, AsyncCopies::kBlock), cuda::grid_size(g.m, AsyncCopies::kBlock)),
            dim3(AsyncCopies::kThreads), AsyncCopies::kSharedBytes},
           stream, g);
  });
}

}  // namespace

Variant<Gemm> async_copies_variant() {
  return {.name = "gemm:4", .refuses = refusal_of_size, .workspace_bytes = nullptr, .run = run, .candidate = false};
}

}  // namespace gpunn::cuda_tiled
