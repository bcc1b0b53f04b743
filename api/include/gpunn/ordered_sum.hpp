// Sums of several arrays, element by element from the first to the last, so that equal arrays give equal bits.
#pragma once

#include <gpunn/abi.h>
#include <gpunn/float_formats.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

namespace gpunn {

namespace detail {

template <class Stored, class Sum>
void add_in_order(std::span<const std::byte* const> parts, std::size_t count, std::byte* to) {
  constexpr std::size_t kBlock = 1024;  // elements that stay in the first cache from part to part
  std::array<Sum, kBlock> sum{};
  std::array<Stored, kBlock> part{};
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t size = std::min(kBlock, count - first);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      std::memcpy(part.data(), parts[p] + first * sizeof(Stored), size * sizeof(Stored));
      if (p == 0) {
        for (std::size_t i = 0; i < size; ++i) sum[i] = static_cast<Sum>(part[i]);
      } else {
        for (std::size_t i = 0; i < size; ++i) sum[i] += static_cast<Sum>(part[i]);
      }
    }
    for (std::size_t i = 0; i < size; ++i) part[i] = static_cast<Stored>(sum[i]);
    std::memcpy(to + first * sizeof(Stored), part.data(), size * sizeof(Stored));
  }
}

}  // namespace detail

// Bytes of an element that sum_in_order() adds up; 0: it does not add up this dtype.
inline std::size_t summed_bytes(int32_t dtype) {
  switch (dtype) {
    case GPUNN_F32:
      return 4;
    case GPUNN_F64:
      return 8;
    case GPUNN_BF16:
    case GPUNN_F16:
      return 2;
    default:
      return 0;
  }
}

// to = parts[0] + parts[1] + ... of `count` elements; parts[i] may be `to` itself. bf16 and f16 are added in f32 and
// rounded once. Does nothing for another dtype.
inline void sum_in_order(int32_t dtype, std::span<const std::byte* const> parts, std::size_t count, std::byte* to) {
  switch (dtype) {
    case GPUNN_F32:
      return detail::add_in_order<float, float>(parts, count, to);
    case GPUNN_F64:
      return detail::add_in_order<double, double>(parts, count, to);
    case GPUNN_BF16:
      return detail::add_in_order<BFloat16, float>(parts, count, to);
    case GPUNN_F16:
      return detail::add_in_order<Half, float>(parts, count, to);
    default:
      return;
  }
}

}  // namespace gpunn
