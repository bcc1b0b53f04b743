#pragma once

#include <gpunn/data.hpp>

#include <cstdint>
#include <span>

namespace gpunn::data {

// The given rows of a split with all that belongs to them, in the order given.
Split copy_rows(const Split& split, std::span<const int64_t> rows);

// Leaves the given rows alone, which rise; in place, so that a large split needs no second copy.
void keep_rows(Split& split, std::span<const int64_t> rows);

// Like copy_rows(), with the samples' values if the split has a source that makes them.
Split with_values(const Split& split, std::span<const int64_t> rows);
// This many rows, or all, at equal distances.
Split evenly_spread(const Split& split, int64_t count);

}  // namespace gpunn::data
