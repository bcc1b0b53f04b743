// Synchronises kernels that overlap (programmatic dependent launch, sm_90). The functions do nothing if the launch does
// not ask for overlap, and on older GPUs.
#pragma once

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

// Waits until the kernels before have ended and their writes are visible.
__device__ __forceinline__ void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// From here on the next kernel of the stream may start on free multiprocessors and run up to its wait.
__device__ __forceinline__ void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace gpunn::cuda_tiled
