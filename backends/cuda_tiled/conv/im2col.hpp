// Convolution as a matrix product with the matrix of im2col in memory: the variant that the others are compared with.
#pragma once

#include <cuda_runtime_api.h>

#include "common/convolution.hpp"
#include "epilogue.cuh"

namespace gpunn::cuda_tiled::conv {

// The matrix, for all images.
uint64_t im2col_bytes(const backends::ConvolutionShape& shape);

void im2col_forward(const backends::ConvolutionShape& shape, const float* x, const float* w, const Epilogue& epilogue,
                    float* y, float* matrix, cudaStream_t stream);
void im2col_backward_data(const backends::ConvolutionShape& shape, const float* dy, const float* w, float* dx,
                          float* matrix, cudaStream_t stream);
void im2col_backward_filter(const backends::ConvolutionShape& shape, const float* dy, const float* x, float* dw,
                            float* matrix, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled::conv
