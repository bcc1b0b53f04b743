// Instructions of Hopper (sm_90a) for the tensor-core convolutions, besides those of gemm/wgmma/wgmma_instructions.cuh:
// copies to shared memory, and operands without swizzle. See PTX ISA 8.5, chapters 9.7.12, 9.7.14 and 9.7.15. On other
// GPUs the kernels that use them are empty and never launched.
#pragma once

#include <cstdint>

#include "gemm/wgmma/wgmma_instructions.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define GPUNN_CONV_TENSOR_CORES 1
#endif

namespace gpunn::cuda_tiled::tensor {

#ifdef GPUNN_CONV_TENSOR_CORES

// Arrives when every cp.async that this thread has issued is done.
__device__ __forceinline__ void barrier_arrive_after_copies(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// --- Copies to shared memory ---

// Copies a float, or a vector of four; writes zeros if not `valid`.
__device__ __forceinline__ void copy_float(uint32_t to, const float* from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(valid ? 4 : 0) : "memory");
}

__device__ __forceinline__ void copy_vector(uint32_t to, const float* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

__device__ __forceinline__ uint32_t load_word(uint32_t from) {
  uint32_t word;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
  return word;
}

// --- Matrix products ---

// An operand whose K is contiguous, without swizzle, made of bricks of 8 rows of 16 bytes: `along` bytes between bricks
// along K, `across` between those of the next 8 rows.
__device__ __forceinline__ uint64_t operand_descriptor(uint32_t address, uint32_t along, uint32_t across) {
  return static_cast<uint64_t>((address & 0x3ffff) >> 4) | (static_cast<uint64_t>(along >> 4) << 16) |
         (static_cast<uint64_t>(across >> 4) << 32);
}

// Rounded to the nearest TF32, ties away from zero.
__device__ __forceinline__ uint32_t round_tf32(float value) {
  uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
  return rounded;
}

__device__ __forceinline__ uint4 round_tf32(const float4& value) {
  return make_uint4(round_tf32(value.x), round_tf32(value.y), round_tf32(value.z), round_tf32(value.w));
}

#endif

}  // namespace gpunn::cuda_tiled::tensor
