#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace gpunn {

constexpr uint64_t kHashOfNothing = 14695981039346656037U;

// FNV-1a (Fowler, Noll and Vo), the same on every machine: a hash for names, which does not protect against forgery.
// Continues the hash of the text before.
constexpr uint64_t hash_of(std::string_view text, uint64_t hash = kHashOfNothing) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}
constexpr uint64_t hash_of(std::span<const std::byte> bytes, uint64_t hash = kHashOfNothing) {
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 1099511628211U;
  return hash;
}

}  // namespace gpunn
