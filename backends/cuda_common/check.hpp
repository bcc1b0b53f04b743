// CUDA's return codes as the ABI's errors.
#pragma once

#include <gpunn/plugin.hpp>

#include <cuda_runtime_api.h>

namespace gpunn::cuda {

// The status that tells the host what it can do about `code`: GPUNN_DEVICE_LOST where the context is spoilt and every
// later call would fail as well.
gpunn_status status_of(cudaError_t code) noexcept;

[[noreturn]] void throw_cuda(cudaError_t code, const char* what);

// Throws plugin::Failure where `code` is not success. `what` says what was done, as "cudaMalloc of the workspace".
inline void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw_cuda(code, what);
}

}  // namespace gpunn::cuda
