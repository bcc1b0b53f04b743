#include "execution/memory_pool.hpp"

#include <algorithm>
#include <bit>

namespace gpunn::execution {

namespace {

constexpr uint64_t kSmallest = 256;
constexpr uint64_t kLarge = uint64_t{16} << 20;
constexpr uint64_t kLargeStep = uint64_t{2} << 20;
constexpr uint64_t kSteps = 8;

uint64_t round_up(uint64_t bytes, uint64_t step) { return (bytes + step - 1) / step * step; }

}  // namespace

uint64_t MemoryPool::block_bytes(uint64_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  // Sizes near the largest number can't be rounded up. They can't be served either.
  if (bytes > UINT64_MAX - kLargeStep) return bytes;
  if (bytes >= kLarge) return round_up(bytes, kLargeStep);
  return round_up(bytes, std::max(std::bit_floor(bytes) / kSteps, kSmallest));
}

MemoryPool::MemoryPool(Source& source) : source_(source) {}

MemoryPool::~MemoryPool() { trim(); }

void* MemoryPool::fresh(uint64_t bytes, Class& of) {
  // Room for the bookkeeping first: nothing is lost if there is none.
  of.unused.reserve(of.blocks + 1);
  void* data = source_.allocate(bytes);
  if (data == nullptr && statistics_.held_bytes > statistics_.used_bytes) {
    trim();
    data = source_.allocate(bytes);
  }
  if (data == nullptr) return nullptr;
  try {
    bytes_of_.emplace(data, bytes);
  } catch (...) {
    source_.release(data);
    throw;
  }
  ++of.blocks;
  statistics_.held_bytes += bytes;
  statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.held_bytes);
  return data;
}

void* MemoryPool::take(uint64_t bytes) {
  const uint64_t size = block_bytes(bytes);
  Class& of = classes_[size];
  ++statistics_.requests;
  void* data = nullptr;
  if (of.unused.empty()) {
    data = fresh(size, of);
    if (data == nullptr) return nullptr;
  } else {
    // The one given back last is the likeliest to be in a cache.
    data = of.unused.back();
    of.unused.pop_back();
    ++statistics_.hits;
  }
  statistics_.used_bytes += size;
  return data;
}

void MemoryPool::give(void* data) noexcept {
  const auto block = bytes_of_.find(data);
  if (block == bytes_of_.end()) return;  // not one of its blocks
  classes_.find(block->second)->second.unused.push_back(data);
  statistics_.used_bytes -= block->second;
}

void MemoryPool::trim() noexcept {
  if (statistics_.held_bytes == statistics_.used_bytes) return;
  source_.wait();
  for (auto& [bytes, of] : classes_) {
    for (void* data : of.unused) {
      source_.release(data);
      bytes_of_.erase(data);
      statistics_.held_bytes -= bytes;
    }
    of.blocks -= of.unused.size();
    of.unused.clear();
  }
  ++statistics_.trims;
}

}  // namespace gpunn::execution
