#include "architecture.hpp"

#include <cuda_runtime_api.h>

namespace gpunn::cuda_tiled {
namespace {

int attribute(cudaDeviceAttr name) {
  int device = 0, value = 0;
  if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetAttribute(&value, name, device) != cudaSuccess) {
    cudaGetLastError();  // must not be told by the next launch
    return 0;
  }
  return value;
}

}  // namespace

int compute_capability() {
  return 10 * attribute(cudaDevAttrComputeCapabilityMajor) + attribute(cudaDevAttrComputeCapabilityMinor);
}

int multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }

int shared_memory_of_block() { return attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin); }

}  // namespace gpunn::cuda_tiled
