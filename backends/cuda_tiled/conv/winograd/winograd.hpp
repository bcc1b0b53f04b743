// Winograd convolutions of fp32: 3x3, stride 1, dilation 1.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "epilogue.cuh"

namespace gpunn::cuda_tiled::winograd {

// A convolution of x[batch, groups * inputs, rows, columns] to y[batch, groups * outputs, ...]. The data gradient is a
// convolution of dy to dx, with the filters rotated by 180 degrees and inputs and outputs exchanged.
struct Convolution {
  int batch;
  int groups;
  int inputs;   // channels of x in a group
  int outputs;  // channels of y in a group
  int rows;
  int columns;
  int result_rows;
  int result_columns;
  int pad_rows;
  int pad_columns;
  bool turned;  // the filters are [groups * inputs, outputs, 3, 3] and turned by 180 degrees
};

uint64_t f2x2_fprop_workspace_bytes(const Convolution& convolution);
void f2x2_fprop(const Convolution& convolution, const float* x, const float* w, const Epilogue& epilogue, float* y,
                float* workspace, cudaStream_t stream);

// The weight gradient, from x and dy, of a convolution whose filters are not rotated. `multiprocessors` of the GPU
// decide the number of shares of the batch.
uint64_t f2x2_wgrad_workspace_bytes(const Convolution& convolution, int multiprocessors);
void f2x2_wgrad(const Convolution& convolution, const float* dy, const float* x, float* dw, float* workspace,
                int multiprocessors, cudaStream_t stream);

// The same with F(4x4, 3x3) and F(3x3, 4x4), which are not fused.
uint64_t f4x4_fprop_workspace_bytes(const Convolution& convolution, int multiprocessors);
void f4x4_fprop(const Convolution& convolution, const float* x, const float* w, const Epilogue& epilogue, float* y,
                float* workspace, int multiprocessors, cudaStream_t stream);
uint64_t f4x4_wgrad_workspace_bytes(const Convolution& convolution, int multiprocessors);
void f4x4_wgrad(const Convolution& convolution, const float* dy, const float* x, float* dw, float* workspace,
                int multiprocessors, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled::winograd
