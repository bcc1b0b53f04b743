// Barriers in shared memory that count arrivals and the bytes of copies (sm_90; empty on older GPUs). Each function is
// one or two PTX instructions, described in the PTX ISA, "Asynchronous Barrier" and "cp.async.bulk".
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

// The address of shared memory as PTX uses it.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// A barrier is a uint64_t in shared memory, given by its pointer or by its address there.
__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
#endif
}
__device__ __forceinline__ void barrier_init(uint64_t* barrier, uint32_t arrivals) {
  barrier_init(shared_address(barrier), arrivals);
}

// Makes the initialised barriers known to copies without threads (TMA, bulk copies) and to the other blocks of the
// cluster.
__device__ __forceinline__ void fence_barrier_init() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

// One arrival, and `bytes` more that copies will bring before the phase ends.
__device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
#endif
}
__device__ __forceinline__ void barrier_expect(uint64_t* barrier, uint32_t bytes) {
  barrier_expect(shared_address(barrier), bytes);
}

__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
#endif
}
__device__ __forceinline__ void barrier_arrive(uint64_t* barrier) { barrier_arrive(shared_address(barrier)); }

// Waits until the phase of this parity has ended. A barrier that has not been used counts as having ended parity 1.
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
#endif
}
__device__ __forceinline__ void barrier_wait(uint64_t* barrier, uint32_t parity) {
  barrier_wait(shared_address(barrier), parity);
}

// After this and a barrier, copies without threads and wgmma see this thread's ordinary writes to shared memory.
__device__ __forceinline__ void fence_shared() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Copies `bytes`, a multiple of 16, between multiples of 16 bytes, without threads; `barrier` gets its bytes. By one
// thread.
__device__ __forceinline__ void copy_bulk(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
#endif
}
__device__ __forceinline__ void copy_bulk(float* to, const float* from, int bytes, uint64_t* barrier) {
  copy_bulk(shared_address(to), from, static_cast<uint32_t>(bytes), shared_address(barrier));
}

}  // namespace gpunn::cuda_tiled
