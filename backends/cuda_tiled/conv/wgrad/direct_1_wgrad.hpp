// The weight gradient of a convolution of few channels.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "common/convolution.hpp"

namespace gpunn::cuda_tiled {

// How the work is split; from the shape alone.
struct DirectWgrad {
  backends::ConvolutionShape shape{};
  int images_per_block = 1;
  int filters_per_block = 1;
  int row_splits = 1;  // of the output rows, in a block
  int chunks = 1;      // of the images
  unsigned shared_bytes = 0;

  uint64_t workspace_bytes() const;
};

// Throws Refusal where the kernel does not serve or would not pay: it wants stride and dilation 1, filters of at most 7
// columns, and an image with its gradient in shared memory.
DirectWgrad direct_wgrad_of(const backends::ConvolutionShape& shape);

// dy, x -> dw, with workspace_bytes() of scratch memory.
void run_direct_wgrad(const DirectWgrad& plan, const float* dy, const float* x, float* dw, float* workspace,
                      cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
