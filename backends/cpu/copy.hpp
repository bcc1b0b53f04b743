// GPUNN_OP_COPY: any strides on both sides, converting between f32, bf16, f16, i32, i64 and u8.
#pragma once

#include <gpunn/kernel.hpp>

#include <cstdint>

#include "add_op.hpp"
#include "common/copy.hpp"
#include "simd/copy.hpp"

namespace gpunn::cpu {

// Copies n elements; strides in elements.
using CopyRun = void (*)(const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t n);

struct CopyPlan {
  Copy loops;
  int64_t x_size = 0;  // of an element, in bytes
  int64_t y_size = 0;
  CopyRun run = nullptr;
  // Not null where the last dimension is a run of memory on both sides: several of them are copied at once.
  RowsCopy rows = nullptr;
  // Not null where x's elements are neighbours along dimension `columns`, and y's along the last one: blocks of these
  // two are transposed.
  TransposingCopy transpose = nullptr;
  int32_t columns = 0;
};

CopyPlan plan_copy(const OpDesc& desc);
CopyPlan plan_loops(const Copy& loops);
void run_copy(const CopyPlan& plan, const OpArgs& args);
// From x on to y on, wherever in their tensors these are.
void run_loops(const CopyPlan& plan, const void* x, void* y);

}  // namespace gpunn::cpu
