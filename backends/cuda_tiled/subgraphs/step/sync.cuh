// Barriers of a cluster and access to the memory of its other blocks, in PTX of sm_90. On older GPUs the functions are
// empty, and the plan is refused.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "shared_barrier.cuh"

namespace gpunn::cuda_tiled {

__device__ __forceinline__ void cluster_barrier() {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n\t"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
#endif
}

// Prefetches a line of memory to the L2 cache.
__device__ __forceinline__ void prefetch_line(const void* line) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
}

__device__ __forceinline__ int cluster_rank() {
  uint32_t rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return static_cast<int>(rank);
}

// A value in a word with the number of the run. Who reads the word sees from it that the value has arrived.
__device__ __forceinline__ uint64_t tagged(float value, uint32_t run) {
  return uint64_t{run} << 32 | __float_as_uint(value);
}

// What blocks of a cluster send each other is counted by a barrier in the receiver's shared memory, which costs neither
// a fence nor a wait for other blocks: each exchange has a barrier of its own, used once, at the same place in all
// blocks.
//
// Stores to where `local` points in this block, but in block `rank` of the cluster, and counts it there.
__device__ __forceinline__ void store_remote(float* local, int rank, float value, uint64_t& counted) {
#if __CUDA_ARCH__ >= 900
  const uint32_t own = shared_address(local);
  const uint32_t own_barrier = shared_address(&counted);
  uint32_t other = 0;
  uint32_t barrier = 0;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(own), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(own_barrier), "r"(rank));
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(other),
               "f"(value), "r"(barrier));
#else
  static_cast<void>(rank);
  static_cast<void>(counted);
  *local = value;
#endif
}

// Two or four floats at once, both sides at a multiple of their size.
template <class T>
requires(sizeof(T) > sizeof(float)) __device__ __forceinline__
    void store_remote(float* local, int rank, T value, uint64_t& counted) {
#if __CUDA_ARCH__ >= 900
  const uint32_t own = shared_address(local);
  const uint32_t own_barrier = shared_address(&counted);
  uint32_t other = 0;
  uint32_t barrier = 0;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(own), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(own_barrier), "r"(rank));
  if constexpr (sizeof(T) == sizeof(float4)) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(other),
        "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(barrier));
  } else {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(other),
                 "f"(value.x), "f"(value.y), "r"(barrier));
  }
#else
  static_cast<void>(rank);
  static_cast<void>(counted);
  *reinterpret_cast<T*>(local) = value;
#endif
}

// What copies and remote stores write is read behind a barrier, which the compiler moves nothing across; so they
// themselves don't keep it from holding values in registers.
//
// Copies to shared memory without waiting; zeros where `there` is false.
template <int BYTES>
__device__ __forceinline__ void copy_async(float* to, const float* from, bool there = true) {
#if __CUDA_ARCH__ >= 800
  const uint32_t at = shared_address(to);
  const int bytes = there ? BYTES : 0;
  if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes));
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(bytes));
  }
#else
  for (int i = 0; i < BYTES / 4; ++i) to[i] = there ? from[i] : 0.0F;
#endif
}

// A barrier in shared memory that counts bytes of bulk copies and of remote stores (sm_90). By one thread, which then
// says how many are to be expected; some may come before.
__device__ __forceinline__ void begin_bytes(uint64_t& barrier) {
  barrier_init(&barrier, 1);
  fence_barrier_init();
}

// Waits for the barrier's first phase, and sees what other blocks of the cluster have sent.
__device__ __forceinline__ void wait_for_bytes(uint64_t& barrier) {
#if __CUDA_ARCH__ >= 900
  const uint32_t at = shared_address(&barrier);
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\n\tselp.u32 %0, 1, "
        "0, p;\n\t}"
        : "=r"(done)
        : "r"(at)
        : "memory");
  }
#endif
}

// Meets the other threads that the barrier was begun for, while the rest of the block does something else. Used once:
// for its first phase. `bar.sync` with a number of threads is as fast, but racecheck takes what other warps do before
// and after the next barrier of the whole block for simultaneous then, in a program of 30 lines too.
__device__ __forceinline__ void meet(uint64_t& barrier) {
#if __CUDA_ARCH__ >= 900
  const uint32_t at = shared_address(&barrier);
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n\tselp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(at)
        : "memory");
  }
#endif
}

// Advances a counter that other kernels wait for, who then see what was written before.
__device__ __forceinline__ void count_written(uint32_t* counter) {
#if __CUDA_ARCH__ >= 700
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
#endif
}

// Waits until a counter that other kernels advance is at `value`; what they wrote before can be seen then.
__device__ __forceinline__ void wait_for_count(const uint32_t* counter, uint32_t value) {
#if __CUDA_ARCH__ >= 700
  uint32_t now = 0;
  while (true) {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
    if (now == value) return;
    __nanosleep(64);
  }
#endif
}

// Waits for all of this thread's copies.
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace gpunn::cuda_tiled
