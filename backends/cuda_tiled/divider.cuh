// Integer division by numbers that are known before a kernel is launched.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

// The upper half of the product.
__host__ __device__ __forceinline__ uint32_t high_word(uint32_t a, uint32_t b) {
#ifdef __CUDA_ARCH__
  return __umulhi(a, b);
#else
  return static_cast<uint32_t>((uint64_t{a} * b) >> 32U);
#endif
}

// n / by for numbers below 2^31, by a multiplication, since the GPU has no division instruction (Granlund and
// Montgomery, 1994).
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
  __host__ __device__ __forceinline__ Result operator()(int n) const {
    const auto number = static_cast<uint32_t>(n);
    const uint32_t quotient = by == 1 ? number : high_word(number, factor) >> shift;
    return {static_cast<int>(quotient), static_cast<int>(number - quotient * by)};
  }
};

// n / d for n and d below 2^16, without the shift: the fused steps divide in loops (divide() in step/shared.cuh).
struct Divisor {
  uint32_t magic = 0;
  uint32_t whole = 0;  // all bits where d is 1

  Divisor() = default;
  explicit Divisor(int d)
      : magic(d == 1 ? 0
                     : static_cast<uint32_t>(((uint64_t{1} << 32) + static_cast<uint64_t>(d) - 1) /
                                             static_cast<uint64_t>(d))),
        whole(d == 1 ? ~uint32_t{0} : 0) {}
};

}  // namespace gpunn::cuda_tiled
