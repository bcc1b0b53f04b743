// Implicit GEMM of fp32: CONV2D, with or without bias and ReLU, and its gradients. It serves any stride, padding,
// dilation and groups, and never writes the matrix of im2col.
#pragma once

#include <string>

#include <cuda_runtime_api.h>

#include "common/convolution.hpp"
#include "epilogue.cuh"

namespace gpunn::cuda_tiled::conv {

// Why the problem is too large for the kernels to count; empty if they serve it.
std::string implicit_gemm_refuses(const backends::ConvolutionShape& shape, bool gradient_of_data);

uint64_t implicit_gemm_fprop_workspace_bytes(const backends::ConvolutionShape& shape, int multiprocessors);
void implicit_gemm_fprop(const backends::ConvolutionShape& shape, const float* x, const float* w,
                         const Epilogue& epilogue, float* y, void* workspace, int multiprocessors, cudaStream_t stream);

uint64_t implicit_gemm_dgrad_workspace_bytes(const backends::ConvolutionShape& shape, int multiprocessors);
void implicit_gemm_dgrad(const backends::ConvolutionShape& shape, const float* dy, const float* w, float* dx,
                         void* workspace, int multiprocessors, cudaStream_t stream);

uint64_t implicit_gemm_wgrad_workspace_bytes(const backends::ConvolutionShape& shape, int multiprocessors);
void implicit_gemm_wgrad(const backends::ConvolutionShape& shape, const float* dy, const float* x, float* dw,
                         void* workspace, int multiprocessors, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled::conv
