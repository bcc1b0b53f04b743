#pragma once

#include <gpunn/kernel.hpp>

#include <cstdint>

namespace gpunn::backends {

// The dimensions of a packed or channels-last tensor from the outermost in memory on.
class MemoryOrder {
 public:
  explicit MemoryOrder(const gpunn_tensor& tensor) : rank_(tensor.rank) {
    const bool channels_last = plugin::is_channels_last(tensor) && !plugin::is_packed(tensor);
    for (int32_t i = 0; i < rank_; ++i) dimensions_[i] = channels_last ? kChannelsLast[i] : i;
  }
  int32_t operator[](int32_t i) const { return dimensions_[i]; }
  const int32_t* begin() const { return dimensions_; }
  const int32_t* end() const { return dimensions_ + rank_; }

 private:
  static constexpr int32_t kChannelsLast[] = {0, 2, 3, 1};

  int32_t rank_;
  int32_t dimensions_[GPUNN_MAX_RANK] = {};
};

}  // namespace gpunn::backends
