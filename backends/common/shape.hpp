// PAD, SLICE, CONCAT and TRANSPOSE, as copies, and QUANTIZED_CONCAT. One tensor is whole. The other is a box of a
// larger tensor, or a tensor with its strides in another order. Images may be packed or channels-last.
#pragma once

#include <cstdint>
#include <vector>

#include "common/copy.hpp"

namespace gpunn::backends {

// A copy that begins at a given element of x and of y.
struct Box {
  Copy loops;
  int64_t x_offset = 0;
  int64_t y_offset = 0;
};

Box slice_of(const OpDesc& desc);
Box transpose_of(const OpDesc& desc);
std::vector<Box> concat_of(const OpDesc& desc);  // one for each input

// QUANTIZED_CONCAT of packed or channels-last tensors. Each row of y is a run of bytes of every input.
struct ByteConcat {
  std::vector<int64_t> runs;  // bytes of an input in a row
  int64_t rows = 0;
  int64_t row = 0;  // bytes
};

ByteConcat byte_concat_of(const OpDesc& desc);

// y, packed, as a loop nest. A position inside [before, before + size) in each dimension takes its value from x; others
// are 0. Neighbouring dimensions are merged if the inner one has no padding. rank is at least 1.
struct Pad {
  Box box;        // x's place in y, of any layout
  int64_t n = 0;  // elements of y
  int32_t rank = 0;
  int64_t dim[GPUNN_MAX_RANK] = {};
  int64_t before[GPUNN_MAX_RANK] = {};
  int64_t size[GPUNN_MAX_RANK] = {};
};

Pad pad_of(const OpDesc& desc);

}  // namespace gpunn::backends
