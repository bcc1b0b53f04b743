#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace gpunn::distributed {

// to = parts[0] + parts[1] + ..., element by element from left to right, so that equal parts give equal bits. All are
// of the size of `to`, and parts[i] may be `to` itself. bf16 and f16 are added in f32 and rounded once. Throws Error
// for another dtype.
void sum_in_order(DType dtype, std::span<const std::byte* const> parts, std::span<std::byte> to);

}  // namespace gpunn::distributed
