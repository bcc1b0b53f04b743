#include "distributed/sum.hpp"

#include <gpunn/error.hpp>
#include <gpunn/float_formats.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace gpunn::distributed {

namespace {

constexpr std::size_t kBlock = 1024;  // elements that stay in the first cache from part to part

template <class Stored, class Sum>
void add_all(std::span<const std::byte* const> parts, std::span<std::byte> to) {
  const std::size_t count = to.size() / sizeof(Stored);
  std::array<Sum, kBlock> sum;
  std::array<Stored, kBlock> part;
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
    std::memcpy(to.data() + first * sizeof(Stored), part.data(), size * sizeof(Stored));
  }
}

}  // namespace

void sum_in_order(DType dtype, std::span<const std::byte* const> parts, std::span<std::byte> to) {
  switch (dtype) {
    case DType::f32:
      return add_all<float, float>(parts, to);
    case DType::f64:
      return add_all<double, double>(parts, to);
    case DType::bf16:
      return add_all<BFloat16, float>(parts, to);
    case DType::f16:
      return add_all<Half, float>(parts, to);
    default:
      throw Error("ranks add up floating-point numbers, not those of another type");
  }
}

}  // namespace gpunn::distributed
