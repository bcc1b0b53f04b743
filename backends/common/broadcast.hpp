// Arithmetic ops whose operands broadcast.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// A loop nest over y, in the order of its elements in memory. Dimension rank-1 is the innermost, and rank is at
// least 1. Neighbouring dimensions are merged if every operand allows it. An operand's stride is in elements: 0 in a
// dimension that it repeats, and 0 or 1 in the innermost.
struct Broadcast {
  static constexpr int kMostOperands = 3;

  int32_t operands = 0;
  int32_t rank = 0;
  int64_t dim[GPUNN_MAX_RANK] = {};
  int64_t stride[kMostOperands][GPUNN_MAX_RANK] = {};
  int64_t n = 0;  // elements of y

  int64_t inner() const { return dim[rank - 1]; }
  // The number of runs of the innermost dimension.
  int64_t runs() const { return n == 0 ? 0 : n / inner(); }
};

// Covers every input and the first output.
Broadcast broadcast_of(const OpDesc& desc);

}  // namespace gpunn::backends
