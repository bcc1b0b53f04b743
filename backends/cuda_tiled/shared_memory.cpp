#include "shared_memory.hpp"

#include <map>
#include <mutex>
#include <utility>

#include <cuda_runtime_api.h>

#include "cuda_common/check.hpp"

namespace gpunn::cuda_tiled {

void allow_shared_memory(const void* kernel, std::size_t bytes) {
  static std::mutex mutex;
  static std::map<std::pair<const void*, int>, std::size_t> allowed;
  int device = 0;
  cuda::check(cudaGetDevice(&device), "asking for the current GPU");
  const std::lock_guard lock(mutex);
  std::size_t& known = allowed[{kernel, device}];
  if (known >= bytes) return;
  cuda::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
              "asking for shared memory for a kernel");
  known = bytes;
}

}  // namespace gpunn::cuda_tiled
