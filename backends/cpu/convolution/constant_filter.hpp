// Filters whose bytes never change, as those of a model that is only called: a kernel rearranges them once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

namespace gpunn::cpu {

// What the rearranged filter depends on. Kernels of equal layouts share it, as those of a model's several batch sizes.
struct FilterLayout {
  std::string kernel;
  std::array<int64_t, 6> numbers{};  // sizes of the filter and of the kernel's tiles
  friend bool operator<(const FilterLayout& a, const FilterLayout& b) {
    return std::tie(a.kernel, a.numbers) < std::tie(b.kernel, b.numbers);
  }
};

// The filter of one kernel, made at its first use and kept as long as a kernel uses it.
class ConstantFilter {
 public:
  ConstantFilter(FilterLayout layout, std::size_t bytes) : layout_(std::move(layout)), bytes_(bytes) {}

  // Of the filter at `source`, which is the same one at each call. make(to) fills 64-byte aligned memory in.
  const void* get(const void* source, const std::function<void(void*)>& make);

 private:
  FilterLayout layout_;
  std::size_t bytes_;
  std::once_flag made_;
  std::shared_ptr<const void> memory_;
};

}  // namespace gpunn::cpu
