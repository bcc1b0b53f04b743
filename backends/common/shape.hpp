// PAD, SLICE, CONCAT and TRANSPOSE: copies between a packed tensor and a box of another, or one with its strides in
// another order.
#pragma once

#include <cstdint>
#include <vector>

#include "common/copy.hpp"

namespace gpunn::backends {

// A copy that begins at an element of x and one of y.
struct Box {
  Copy loops;
  int64_t x_offset = 0;
  int64_t y_offset = 0;
};

Box slice_of(const OpDesc& desc);
Box transpose_of(const OpDesc& desc);
std::vector<Box> concat_of(const OpDesc& desc);  // one for each input

// y as a loop nest; a position is x's where it lies in [before, before + size) of each dimension, else 0. Neighbouring
// dimensions are merged where the inner one has no padding. rank is at least 1.
struct Pad {
  Box box;        // x's place in y
  int64_t n = 0;  // elements of y
  int32_t rank = 0;
  int64_t dim[GPUNN_MAX_RANK] = {};
  int64_t before[GPUNN_MAX_RANK] = {};
  int64_t size[GPUNN_MAX_RANK] = {};
};

Pad pad_of(const OpDesc& desc);

}  // namespace gpunn::backends
