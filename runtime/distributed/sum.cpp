#include "distributed/sum.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ordered_sum.hpp>

namespace gpunn::distributed {

void sum_in_order(DType dtype, std::span<const std::byte* const> parts, std::span<std::byte> to) {
  const auto id = static_cast<int32_t>(dtype);
  const std::size_t bytes = summed_bytes(id);
  if (bytes == 0) throw Error("ranks add up floating-point numbers, not those of another type");
  gpunn::sum_in_order(id, parts, to.size() / bytes, to.data());
}

}  // namespace gpunn::distributed
