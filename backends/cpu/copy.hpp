// GPUNN_OP_COPY: any strides on both sides, converting between f32, i32, i64 and u8.
#pragma once

#include <gpunn/plugin.hpp>

#include <cstdint>

#include "requirements.hpp"

namespace gpunn::cpu {

// Copies n elements; strides in elements.
using CopyRun = void (*)(const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t n);

// A loop nest in the order of y's memory, neighbouring dimensions merged where both sides allow; dimension rank-1 is
// the innermost.
struct CopyPlan {
  int32_t rank = 0;
  int64_t dim[GPUNN_MAX_RANK] = {};
  int64_t x_stride[GPUNN_MAX_RANK] = {};
  int64_t y_stride[GPUNN_MAX_RANK] = {};
  int64_t x_size = 0;  // of an element, in bytes
  int64_t y_size = 0;
  CopyRun run = nullptr;
};

CopyPlan plan_copy(const OpDesc& desc);
void run_copy(const CopyPlan& plan, const OpArgs& args);

}  // namespace gpunn::cpu
