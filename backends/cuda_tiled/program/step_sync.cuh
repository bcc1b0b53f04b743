// Barriers of a cluster and memory of its other blocks, in PTX of sm_90. Older GPUs compile to nothing: the plan is
// refused there.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

__device__ __forceinline__ void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

__device__ __forceinline__ int cluster_rank() {
  uint32_t rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return static_cast<int>(rank);
}

// Stores to where `local` points in this block, but in block `rank` of the cluster.
__device__ __forceinline__ void store_remote(float* local, int rank, float value) {
#if __CUDA_ARCH__ >= 900
  const auto own = static_cast<uint32_t>(__cvta_generic_to_shared(local));
  uint32_t other = 0;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(own), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(other), "f"(value) : "memory");
#else
  static_cast<void>(rank);
  *local = value;
#endif
}

// Four floats at once, both sides at a multiple of 16 bytes.
__device__ __forceinline__ void store_remote(float* local, int rank, float4 value) {
#if __CUDA_ARCH__ >= 900
  const auto own = static_cast<uint32_t>(__cvta_generic_to_shared(local));
  uint32_t other = 0;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(own), "r"(rank));
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(other), "f"(value.x), "f"(value.y),
               "f"(value.z), "f"(value.w)
               : "memory");
#else
  static_cast<void>(rank);
  *reinterpret_cast<float4*>(local) = value;
#endif
}

// Copies to shared memory without waiting; zeros where `there` is false.
template <int BYTES>
__device__ __forceinline__ void copy_async(float* to, const float* from, bool there = true) {
#if __CUDA_ARCH__ >= 800
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = there ? BYTES : 0;
  if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
  }
#else
  for (int i = 0; i < BYTES / 4; ++i) to[i] = there ? from[i] : 0.0F;
#endif
}

// Copies since the last commit are a group.
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for all of this thread's groups but the last PENDING.
template <int PENDING>
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

}  // namespace gpunn::cuda_tiled
