// MAX_POOL2D, AVG_POOL2D and their gradients for channels-last images: windows of any kind, in f32, bf16 and f16.
#pragma once

#include <cuda_runtime_api.h>

#include "common/pooling.hpp"

namespace gpunn::cuda_tiled::pooling_last {

// Throws Refusal if there are too many elements for the kernels to number.
void require_served(const backends::Pool& pool);
void require_gradient_served(const backends::Pool& pool);  // of maxima

// The pointers are to tensors of `dtype`: GPUNN_F32, GPUNN_BF16 or GPUNN_F16.
void run_maximum(const backends::Pool& pool, int32_t dtype, const void* x, void* y, cudaStream_t stream);
void run_maximum_backward(const backends::Pool& pool, int32_t dtype, const void* dy, const void* x, void* dx,
                          cudaStream_t stream);
void run_mean(const backends::Pool& pool, int32_t dtype, const void* x, void* y, cudaStream_t stream);
void run_mean_backward(const backends::Pool& pool, int32_t dtype, const void* dy, void* dx, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled::pooling_last
