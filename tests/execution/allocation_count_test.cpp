// The operators new that count. In a file of their own, so that no compiler sees through them.
#include "execution/allocation_count.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "catch.hpp"

// Clang's sanitizers link an operator new of their own beside a program's. Where they are, nothing is counted.
#ifdef __clang__
#define GPUNN_COUNTS_ALLOCATIONS (!__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer))
#else
#define GPUNN_COUNTS_ALLOCATIONS 1
#endif

namespace {

std::atomic<int64_t> count{0};

#if GPUNN_COUNTS_ALLOCATIONS
void* allocate(std::size_t bytes, std::size_t alignment) {
  ++count;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const data = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
#endif

}  // namespace

int64_t allocation_count() { return count; }

#if GPUNN_COUNTS_ALLOCATIONS

// Every form: a sanitizer brings its own of those that are left out.
void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new[](std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++count;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  ++count;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete[](void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete[](void* data, std::size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete[](void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { std::free(data); }
void operator delete[](void* data, std::size_t, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, const std::nothrow_t&) noexcept { std::free(data); }
void operator delete[](void* data, const std::nothrow_t&) noexcept { std::free(data); }

TEST_CASE("allocations are counted", "[execution]") {
  struct alignas(64) Wide {
    char bytes[64];
  };
  const int64_t before = allocation_count();
  const auto one = std::make_unique<Wide>();
  const auto two = std::make_unique<int[]>(100);
  const int64_t after = allocation_count();
  CHECK(one != nullptr);
  CHECK(two != nullptr);
  CHECK(after == before + 2);
}

#endif
