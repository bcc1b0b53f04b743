// Which entries of a dimension Slice, Split and Pad take, of data and of constants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

struct SliceRange {
  std::size_t axis = 0;
  int64_t start = 0, count = 0, step = 1;  // a step below 0: from the start backwards
};

// Of a Slice of a value of these sizes, those that leave all alone left out. The batch has no end: a range of it is
// refused unless it is the whole. Throws Unsupported.
std::vector<SliceRange> slice_ranges(const Call& call, const Sizes& sizes);

// Of a Split of a dimension of this size, one part per output, none of them below `least`. Throws Unsupported.
std::vector<int64_t> split_sizes(const Call& call, int64_t size, int64_t least = 1);

// Of a Pad: "constant", "edge", "wrap" or "reflect". Throws Unsupported for another word.
std::string pad_mode(const Call& call);

// Of a Pad by `before` and `behind` entries: which of `size` entries each entry of the result is, or kBorder. Negative
// numbers take entries away before others are added. Throws Unsupported.
constexpr int64_t kBorder = -1;
std::vector<int64_t> padded_places(const std::string& mode, int64_t size, int64_t before, int64_t behind);

}  // namespace gpunn::interchange
