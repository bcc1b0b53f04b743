#include "convolution/constant_filter.hpp"

#include <gpunn/kernel.hpp>

#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

namespace gpunn::cpu {
namespace {

struct FilterKey {
  const void* source;
  FilterLayout layout;
  friend bool operator<(const FilterKey& a, const FilterKey& b) {
    return std::tie(a.source, a.layout) < std::tie(b.source, b.layout);
  }
};

struct FilterCache {
  std::mutex mutex;
  std::map<FilterKey, std::weak_ptr<const void>> filters;
};

FilterCache& filter_cache() {
  static FilterCache cache;
  return cache;
}

}  // namespace

const void* ConstantFilter::get(const void* source, const std::function<void(void*)>& make) {
  std::call_once(made_, [&] {
    FilterCache& cache = filter_cache();
    const std::lock_guard lock(cache.mutex);
    std::erase_if(cache.filters, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<const void>& kept = cache.filters[{source, layout_}];
    memory_ = kept.lock();
    if (memory_ != nullptr) return;
    constexpr std::size_t kAlignment = 64;
    void* const memory = std::aligned_alloc(kAlignment, (bytes_ / kAlignment + 1) * kAlignment);
    if (memory == nullptr) {
      throw plugin::Failure(GPUNN_OUT_OF_MEMORY,
                            "no host memory for " + std::to_string(bytes_) + " bytes of a rearranged filter");
    }
    memory_ = std::shared_ptr<const void>(memory, std::free);
    make(memory);
    kept = memory_;
  });
  return memory_.get();
}

}  // namespace gpunn::cpu
