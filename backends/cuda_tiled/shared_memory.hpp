// Shared memory above the 48 KiB that every kernel may have.
#pragma once

#include <cstddef>

namespace gpunn::cuda_tiled {

// Lets `kernel` have `bytes` of shared memory on the current GPU; never takes away what it was given before, which
// another launch may rely on.
void allow_shared_memory(const void* kernel, std::size_t bytes);

template <class... Parameters>
void allow_shared_memory(void (*kernel)(Parameters...), std::size_t bytes) {
  allow_shared_memory(reinterpret_cast<const void*>(kernel), bytes);
}

}  // namespace gpunn::cuda_tiled
