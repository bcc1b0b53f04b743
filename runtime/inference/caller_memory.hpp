// Checks of the memory that a caller in C names: pointers, counts, and structs that begin with struct_size.
#pragma once

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace gpunn::inference {

inline constexpr uint32_t kLargestStruct = 1 << 16;  // a size above this is a negative number, or was never set

inline void require_pointer(const void* pointer, std::string_view what) {
  if (pointer == nullptr) throw Error(std::string(what) + " is NULL", ExitCode::usage);
}

// Returns the bytes of `count` items in the caller's memory. Throws if 64 bits or the address space do not hold them.
inline uint64_t require_extent(const void* data, uint64_t count, uint64_t item_bytes, std::string_view what) {
  uint64_t bytes = 0, end = 0;
  if (!__builtin_mul_overflow(count, item_bytes, &bytes) &&
      !__builtin_add_overflow(reinterpret_cast<uintptr_t>(data), bytes, &end)) {
    return bytes;
  }
  throw Error(std::string(what) + ": " + std::to_string(count) + " times " + std::to_string(item_bytes) +
                  " bytes do not fit into memory",
              ExitCode::usage);
}

// The caller's list of 0 to `most` items. Throws if it is longer, or NULL.
template <class T>
std::span<const T> list_of(const T* items, uint64_t count, uint64_t most, std::string_view what) {
  if (count == 0) return {};
  require_pointer(items, what);
  if (count > most) {
    throw Error(std::string(what) + ": expected at most " + std::to_string(most) + ", found " + std::to_string(count),
                ExitCode::usage);
  }
  require_extent(items, count, sizeof(T), what);
  return {items, count};
}

inline uint32_t require_struct_size(uint32_t size, const char* what) {
  if (size >= sizeof(uint32_t) && size <= kLargestStruct) return size;
  throw Error(std::string(what) + ": struct_size is " + std::to_string(size) + "; set it to the struct's size",
              ExitCode::usage);
}

// Copies as much of a struct as both sides know. A field that `size` cuts in two is not copied.
template <class T>
void copy_struct(const T& from, T& to, uint32_t size) {
  const uint32_t whole = size < alignof(T) ? size : size / alignof(T) * alignof(T);
  std::memcpy(&to, &from, std::min<std::size_t>(whole, sizeof(T)));
}

template <class T>
void give_struct(const T& from, T* to, const char* what) {
  require_pointer(to, what);
  const uint32_t size = require_struct_size(to->struct_size, what);
  copy_struct(from, *to, size);
  to->struct_size = size;
}

}  // namespace gpunn::inference
