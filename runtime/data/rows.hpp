#pragma once

#include <gpunn/data.hpp>

#include <cstdint>
#include <span>

namespace gpunn::data {

// The given rows of a split with all that belongs to them, in the order given.
Split copy_rows(const Split& split, std::span<const int64_t> rows);

// Leaves the given rows alone, which rise; in place, so that a large split needs no second copy.
void keep_rows(Split& split, std::span<const int64_t> rows);

}  // namespace gpunn::data
