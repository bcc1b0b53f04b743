// The warp's instructions of tensor cores: mma.sync and ldmatrix (sm_80 and later).
//
// Of a lane, g = lane / 4 and t = lane % 4. d[0], d[1] are row g, columns 2t and 2t + 1 of the 16 x 8 result; d[2],
// d[3] are row g + 8. In half precision a[0] holds row g, k of 2t and 2t + 1; a[1] row g + 8; a[2], a[3] the same at k
// + 8; b[0] holds column g, k of 2t and 2t + 1; b[1] the same at k + 8. In TF32 a[0] is row g, k of t; a[1] row g + 8;
// a[2], a[3] the same at k + 4; b[0] is column g, k of t; b[1] the same at k + 4.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace gpunn::cuda_tiled {

struct Tf32 {};

__device__ __forceinline__ uint32_t rounded_to_tf32(float x) {
  uint32_t rounded = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
#endif
  return rounded;
}

// Two numbers as the halves of a register, `low` in the lower one.
template <class Input>
__device__ __forceinline__ uint32_t packed(float low, float high);

template <>
__device__ __forceinline__ uint32_t packed<__nv_bfloat16>(float low, float high) {
  uint32_t pair = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#endif
  return pair;
}

template <>
__device__ __forceinline__ uint32_t packed<__half>(float low, float high) {
  uint32_t pair = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#endif
  return pair;
}

// d += a b.
template <class Input>
__device__ __forceinline__ void multiply_fragments(float& d0, float& d1, float& d2, float& d3, const uint32_t (&a)[4],
                                                   uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<Input, __nv_bfloat16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else if constexpr (std::is_same_v<Input, __half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
#endif
}

// Four matrices of 8 x 8 numbers of 16 bits in shared memory. Lane i says where a row begins: row i % 8 of matrix i
// / 8. Register m gets, of matrix m, row g and columns 2t and 2t + 1; transposed: column g, rows 2t and 2t + 1.
template <bool transposed>
__device__ __forceinline__ void load_matrices(uint32_t (&to)[4], const void* row) {
#if __CUDA_ARCH__ >= 800
  const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
  }
#endif
}

}  // namespace gpunn::cuda_tiled
