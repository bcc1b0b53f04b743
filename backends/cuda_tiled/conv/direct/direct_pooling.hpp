// direct:1 fused with the MAX_POOL2D behind it, in one kernel.
#pragma once

#include <cuda_runtime_api.h>

#include "common/pooling.hpp"
#include "conv/convolution.hpp"
#include "conv/direct/direct_convolution.hpp"

namespace gpunn::cuda_tiled {

struct DirectPooling {
  direct::FpropPlan plan;
  bool relu = false;
  int early_blocks = 0;
};

// Throws Refusal.
DirectPooling direct_pooling_of(const ConvolutionProblem& problem, const backends::Pool& pool);
// y: nullptr if the convolution's own output is not needed.
void run_direct_pooling(const DirectPooling& with, const float* x, const float* w, const float* bias, float* y,
                        float* pooled, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
