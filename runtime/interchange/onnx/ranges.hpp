// The ranges of Slice and Split, of data and of constants alike.
#pragma once

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

}  // namespace gpunn::interchange
