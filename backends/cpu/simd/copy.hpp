// Copies of rows, and copies that exchange rows and columns.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

// y[j * y_stride + i] = x[i * x_stride + j] for i < rows, j < columns; strides in elements.
using TransposingCopy = void (*)(const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t rows,
                                 int64_t columns);

// `bytes` bytes of each row; steps from row to row in bytes. x and y don't overlap.
using RowsCopy = void (*)(const char* x, int64_t x_step, char* y, int64_t y_step, int64_t rows, int64_t bytes);

struct CopyKernels {
  RowsCopy rows;
  TransposingCopy f32;
  TransposingCopy f32_to_bf16;
  TransposingCopy bf16_to_f32;
  TransposingCopy bf16;
};

GPUNN_DECLARE_ISA_VARIANTS(CopyKernels, copy_kernels);

}  // namespace gpunn::cpu
