// gemm:mma_sync and gemm:mma_sync_split, matrix products on tensor cores by mma.sync, the instruction of a warp (Ampere
// and later). As in the last fp32 variants, asynchronous copies bring tiles of a and b to shared memory, some stages
// ahead, in the layout of global memory. A warp computes kWarpM x kWarpN of y from fragments in registers, 16 x 8 x 8
// (TF32) or 16 x 8 x 16 (BF16) at a time. Operands are rounded to nearest as they are loaded into fragments: ties to
// even for BF16, away from zero for TF32.
//
// It serves any size and transpose: elements outside the matrix are zeros in shared memory and are not stored.
//
// H200: 4096^3, NT, in 1.45 ms in TF32, 95 TFLOP/s; BF16 138 TFLOP/s. Error against float64 2.9e-4 and 2.3e-3.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "async_copy.cuh"
#include "cuda_common/divide_up.hpp"
#include "epilogue.cuh"

namespace gpunn::cuda_tiled {

struct MmaArguments {
  const float* a;
  const float* b;
  float* y;  // where K is split: sums of [part, m, n]
  int m, n, k;
  int k_of_part;              // a multiple of kBlockK
  bool vectors_a, vectors_b;  // lines begin at, and consist of, 16 bytes each
  Epilogue epilogue;
};

// A block makes tile_m x tile_n of y, a warp of it warp_m x warp_n, with `stages` tiles of K in shared memory.
struct MmaTile {
  bool bf16;
  int tile_m, tile_n;
  int warp_m, warp_n;
  int stages;
};

template <MmaTile tile>
struct MmaTiling {
  static constexpr bool kBf16 = tile.bf16;
  static constexpr int kTileM = tile.tile_m, kTileN = tile.tile_n;
  static constexpr int kWarpM = tile.warp_m, kWarpN = tile.warp_n;
  static constexpr int kStages = tile.stages;
  static constexpr int kBlockK = 16;
  static constexpr int kWarpsN = kTileN / kWarpN;
  static constexpr int kThreads = 32 * (kTileM / kWarpM) * kWarpsN;
};

// A tile of `kOuter` x 16 in shared memory. The pitch lets the lanes of a fragment, 8 of the outer index by 4 of K,
// find their numbers in different banks; BF16 reads pairs of neighbours in K.
template <bool kKMajor, int kOuter, bool kBf16>
struct MmaOperand {
  static constexpr int kPitch = kKMajor ? (kBf16 ? 24 : 20) : kOuter + (kBf16 ? 4 : 8);
  static constexpr int kFloats = kPitch * (kKMajor ? kOuter : 16);
  static constexpr int kLines = kKMajor ? kOuter : 16;
  static constexpr int kLine = kKMajor ? 16 : kOuter;  // numbers

  __device__ __forceinline__ static float at(const float* tile, int outer, int k) {
    return kKMajor ? tile[outer * kPitch + k] : tile[k * kPitch + outer];
  }
  // At k and k + 1, for an even k.
  __device__ __forceinline__ static float2 pair_at(const float* tile, int outer, int k) {
    if constexpr (kKMajor) return *reinterpret_cast<const float2*>(tile + outer * kPitch + k);
    return make_float2(tile[k * kPitch + outer], tile[(k + 1) * kPitch + outer]);
  }

  // Starts copying the tile at (outer, k) of the packed matrix whose sizes are size_outer and size_k; K ends at end_k.
  template <int kThreads>
  __device__ __forceinline__ static void copy(float* tile, const float* matrix, int outer, int k, int size_outer,
                                              int size_k, int end_k, bool vectors) {
    const int first_line = kKMajor ? outer : k, lines = kKMajor ? size_outer : end_k;
    const int first = kKMajor ? k : outer, line_end = kKMajor ? end_k : size_outer;
    const int64_t length = kKMajor ? size_k : size_outer;
    if (vectors) {
      constexpr int kChunks = kLine / 4;
      static_assert(kLines * kChunks % kThreads == 0);
#pragma unroll
      for (int i = static_cast<int>(threadIdx.x); i < kLines * kChunks; i += kThreads) {
        const int line = i / kChunks, in_line = i % kChunks * 4;
        const bool inside = first_line + line < lines && first + in_line < line_end;
        const int64_t offset = inside ? (first_line + line) * length + first + in_line : 0;
        copy_async<16>(tile + line * kPitch + in_line, matrix + offset, inside);
      }
    } else {
#pragma unroll 4
      for (int i = static_cast<int>(threadIdx.x); i < kLines * kLine; i += kThreads) {
        const int line = i / kLine, in_line = i % kLine;
        const bool inside = first_line + line < lines && first + in_line < line_end;
        const int64_t offset = inside ? (first_line + line) * length + first + in_line : 0;
        copy_async<4>(tile + line * kPitch + in_line, matrix + offset, inside);
      }
    }
  }
};

template <class T, bool kTransposeA, bool kTransposeB>
struct MmaShared {
  using A = MmaOperand<!kTransposeA, T::kTileM, T::kBf16>;
  using B = MmaOperand<kTransposeB, T::kTileN, T::kBf16>;
  static constexpr int kStageFloats = A::kFloats + B::kFloats;
  static constexpr int kBytes = T::kStages * kStageFloats * static_cast<int>(sizeof(float));
};

__device__ __forceinline__ uint32_t to_tf32(float x) {
  uint32_t rounded = 0;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return rounded;
}

__device__ __forceinline__ uint32_t to_bf16_pair(float2 x) {
  uint32_t rounded = 0;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(rounded) : "f"(x.y), "f"(x.x));
  return rounded;
}

// d += a b, with the fragments of a 16 x 8 (TF32) or 16 x 16 (BF16) a.
template <bool kBf16>
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (kBf16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

template <class T, bool kTransposeA, bool kTransposeB>
__global__ __launch_bounds__(T::kThreads) void mma_sync(MmaArguments g) {
#if __CUDA_ARCH__ >= 800
  using Shared = MmaShared<T, kTransposeA, kTransposeB>;
  using A = typename Shared::A;
  using B = typename Shared::B;
  extern __shared__ __align__(16) float mma_shared[];
  const int row = static_cast<int>(blockIdx.x) * T::kTileM, column = static_cast<int>(blockIdx.y) * T::kTileN;
  const int first_k = static_cast<int>(blockIdx.z) * g.k_of_part;
  const int end_k = min(first_k + g.k_of_part, g.k);
  const int blocks = cuda::divide_up(end_k - first_k, T::kBlockK);

  const auto copy = [&](int block) {
    if (block < blocks) {
      float* const tile = mma_shared + block % T::kStages * Shared::kStageFloats;
      const int k = first_k + block * T::kBlockK;
      A::template copy<T::kThreads>(tile, g.a, row, k, g.m, g.k, end_k, g.vectors_a);
      B::template copy<T::kThreads>(tile + A::kFloats, g.b, column, k, g.n, g.k, end_k, g.vectors_b);
    }
    commit_copies();
  };
  for (int block = 0; block < T::kStages - 1; ++block) copy(block);

  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int group = static_cast<int>(threadIdx.x) % 32 / 4, quad = static_cast<int>(threadIdx.x) % 4;
  const int warp_row = warp / T::kWarpsN * T::kWarpM, warp_column = warp % T::kWarpsN * T::kWarpN;
  constexpr int kMs = T::kWarpM / 16, kNs = T::kWarpN / 8;
  float d[kMs][kNs][4] = {};
  for (int block = 0; block < blocks; ++block) {
    wait_copies<T::kStages - 2>();
    __syncthreads();  // all have the block's tiles, and are done with the one that the next copy replaces
    copy(block + T::kStages - 1);
    const float* const a = mma_shared + block % T::kStages * Shared::kStageFloats;
    const float* const b = a + A::kFloats;
    constexpr int kStep = T::kBf16 ? 16 : 8;
#pragma unroll
    for (int k = 0; k < T::kBlockK; k += kStep) {
      uint32_t from_a[kMs][4], from_b[kNs][2];
#pragma unroll
      for (int i = 0; i < kMs * 4; ++i) {
        // 0: (group, low k), 1: (group + 8, low k), 2 and 3: the same at the high k
        const int outer = warp_row + i / 4 * 16 + i % 2 * 8 + group;
        if constexpr (T::kBf16)
          from_a[i / 4][i % 4] = to_bf16_pair(A::pair_at(a, outer, k + i % 4 / 2 * 8 + quad * 2));
        else
          from_a[i / 4][i % 4] = to_tf32(A::at(a, outer, k + i % 4 / 2 * 4 + quad));
      }
#pragma unroll
      for (int i = 0; i < kNs * 2; ++i) {
        const int outer = warp_column + i / 2 * 8 + group;
        if constexpr (T::kBf16)
          from_b[i / 2][i % 2] = to_bf16_pair(B::pair_at(b, outer, k + i % 2 * 8 + quad * 2));
        else
          from_b[i / 2][i % 2] = to_tf32(B::at(b, outer, k + i % 2 * 4 + quad));
      }
#pragma unroll
      for (int i = 0; i < kMs * kNs; ++i) mma<T::kBf16>(d[i / kNs][i % kNs], from_a[i / kNs], from_b[i % kNs]);
    }
  }

  float* const y = g.y + int64_t{blockIdx.z} * g.m * g.n;
#pragma unroll
  for (int i = 0; i < kMs * kNs * 2; ++i) {
    const int r = row + warp_row + i / (kNs * 2) * 16 + i % 2 * 8 + group;
    const int c = column + warp_column + i / 2 % kNs * 8 + quad * 2;
    const float* const sums = &d[i / (kNs * 2)][i / 2 % kNs][i % 2 * 2];
    if (r >= g.m || c >= g.n) continue;
    float* const at = y + int64_t{r} * g.n + c;
    const bool both = c + 1 < g.n;
    float first = sums[0], second = sums[1];
    if (g.epilogue.bias != nullptr) {
      first += g.epilogue.bias[c];
      if (both) second += g.epilogue.bias[c + 1];
    }
    if (g.epilogue.relu) {  // not fmaxf, which drops a NaN
      first = first < 0.0F ? 0.0F : first;
      second = second < 0.0F ? 0.0F : second;
    }
    if (both && g.n % 2 == 0) {
      *reinterpret_cast<float2*>(at) = make_float2(first, second);
    } else {
      at[0] = first;
      if (both) at[1] = second;
    }
  }
#endif
}

}  // namespace gpunn::cuda_tiled
