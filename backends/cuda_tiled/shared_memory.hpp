// Raises a kernel's limit of shared memory above the default 48 KiB.
#pragma once

#include <cstddef>

namespace gpunn::cuda_tiled {

// Lets `kernel` use `bytes` of shared memory on the current GPU. It never lowers an earlier limit, which another launch
// may rely on.
void allow_shared_memory(const void* kernel, std::size_t bytes);

template <class... Parameters>
void allow_shared_memory(void (*kernel)(Parameters...), std::size_t bytes) {
  allow_shared_memory(reinterpret_cast<const void*>(kernel), bytes);
}

}  // namespace gpunn::cuda_tiled
