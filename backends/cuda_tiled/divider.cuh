#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

// n / by of numbers below 2^31 by a product, since the GPU has no division (Granlund and Montgomery, 1994).
struct Divider {
  uint32_t by = 1;
  uint32_t factor = 0;
  uint32_t shift = 0;

  Divider() = default;
  explicit Divider(int64_t divisor) : by(static_cast<uint32_t>(std::max<int64_t>(1, divisor))) {
    if (by == 1) return;
    uint32_t log = 0;
    while ((uint64_t{1} << log) < by) ++log;
    factor = static_cast<uint32_t>(((uint64_t{1} << (31 + log)) + by - 1) / by);
    shift = log - 1;
  }

  struct Result {
    int quotient;
    int rest;
  };
  __device__ __forceinline__ Result operator()(int n) const {
    const auto number = static_cast<uint32_t>(n);
    const uint32_t quotient = by == 1 ? number : __umulhi(number, factor) >> shift;
    return {static_cast<int>(quotient), static_cast<int>(number - quotient * by)};
  }
};

}  // namespace gpunn::cuda_tiled
