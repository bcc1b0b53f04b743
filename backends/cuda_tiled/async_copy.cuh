// Asynchronous copies from global to shared memory that bypass the registers and that a thread waits for later
// (cp.async, from sm_80 on). On older GPUs they are ordinary copies.
#pragma once

#include <cstdint>

namespace gpunn::cuda_tiled {

// Copies `Bytes` (4, 8 or 16) from `source`, which must be aligned to them. If not `valid`, writes zeros and reads
// nothing.
template <int Bytes>
__device__ __forceinline__ void copy_async(float* shared, const float* source, bool valid) {
#if __CUDA_ARCH__ >= 800
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int bytes = valid ? Bytes : 0;
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(source), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(source), "n"(Bytes), "r"(bytes)
                 : "memory");
  }
#else
  for (int i = 0; i < Bytes / 4; ++i) shared[i] = valid ? source[i] : 0.0F;
#endif
}

// The same, always valid.
template <int Bytes>
__device__ __forceinline__ void copy_async(float* shared, const float* source) {
#if __CUDA_ARCH__ >= 800
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(source) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(source), "n"(Bytes) : "memory");
  }
#else
  for (int i = 0; i < Bytes / 4; ++i) shared[i] = source[i];
#endif
}

// Ends a group of copies of this thread.
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most `Pending` of this thread's groups, the newest ones, are unfinished.
template <int Pending>
__device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#endif
}

}  // namespace gpunn::cuda_tiled
