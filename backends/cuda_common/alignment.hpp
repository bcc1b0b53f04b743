// Whether tensors begin where several elements may be read or written at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace gpunn::cuda {

inline bool is_aligned(const void* tensor, std::size_t bytes) {
  return reinterpret_cast<uintptr_t>(tensor) % bytes == 0;
}

template <class Tensors = std::initializer_list<const void*>>
bool are_aligned(const Tensors& tensors, std::size_t bytes) {
  return std::all_of(tensors.begin(), tensors.end(), [bytes](const void* tensor) { return is_aligned(tensor, bytes); });
}

}  // namespace gpunn::cuda
