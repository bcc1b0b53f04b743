// The warp-level instructions of tensor cores: mma.sync and ldmatrix (from sm_80 on).
//
// For each lane let g = lane / 4 and t = lane % 4. In the 16 x 8 result d[0] and d[1] are row g, columns 2t and 2t + 1;
// d[2] and d[3] are the same in row g + 8. In half precision a[0] holds row g, k = 2t and 2t + 1; a[1] holds row g + 8;
// a[2] and a[3] hold the same at k + 8. b[0] holds column g, k = 2t and 2t + 1; b[1] holds the same at k + 8. In TF32
// a[0] is row g, k = t; a[1] is row g + 8; a[2] and a[3] are the same at k + 4. b[0] is column g, k = t; b[1] is the
// same at k + 4.
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

// Two numbers packed in a register, `low` in the lower half.
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

// Loads four 8 x 8 matrices of 16-bit numbers from shared memory. Lane i gives the address of row i % 8 of matrix i /
// 8. Register m receives row g, columns 2t and 2t + 1 of matrix m; if transposed, column g, rows 2t and 2t + 1.
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
