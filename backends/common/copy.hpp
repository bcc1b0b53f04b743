// COPY: any strides on both sides, converting between f32, bf16, f16, i32, i64 and u8.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// A loop nest in the order of y's memory. Neighbouring dimensions are merged if both sides allow it. Dimension rank-1
// is the innermost, rank is at least 1, and strides are in elements.
struct Copy {
  int32_t from = 0;  // dtypes
  int32_t to = 0;
  int32_t rank = 0;
  int64_t dim[GPUNN_MAX_RANK] = {};
  int64_t x_stride[GPUNN_MAX_RANK] = {};
  int64_t y_stride[GPUNN_MAX_RANK] = {};
  int64_t n = 0;  // elements
};

Copy copy_of(const OpDesc& desc);
// For two tensors of the same shape and any strides.
Copy copy_loops(const gpunn_tensor& x, const gpunn_tensor& y);

}  // namespace gpunn::backends
