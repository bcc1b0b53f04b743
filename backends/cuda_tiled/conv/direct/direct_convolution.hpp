// Direct convolutions for few channels.
#pragma once

#include <cstdint>
#include <memory>

#include <cuda_runtime_api.h>

#include "common/convolution.hpp"
#include "common/pooling.hpp"

namespace gpunn::cuda_tiled::direct {

struct FpropPlan {
  struct Data;
  std::shared_ptr<const Data> data;  // empty: there is none
};
FpropPlan fprop_of(const backends::ConvolutionShape& shape, bool backward_data, int tk = 0, int tq = 0, int splits = 0,
                   int tp = 0);
// The plan with MAX_POOL2D behind the convolution, if a block has whole planes; else none.
FpropPlan fprop_pooling_of(const backends::ConvolutionShape& shape, const backends::Pool& pool);
// early_blocks, here and below: a kernel of at most so many blocks may start before the previous kernel has ended.
// pooled: the result of fprop_pooling_of(); y may then be nullptr.
void run_fprop(const FpropPlan& plan, const float* x, const float* w, const float* bias, bool relu, float* y,
               int early_blocks, cudaStream_t stream, float* pooled = nullptr);
uint64_t shared_bytes(const FpropPlan& plan);  // 0 where there is no plan

struct DgradPlan {
  struct Data;
  std::shared_ptr<const Data> data;  // empty: there is none
};
DgradPlan dgrad_of(const backends::ConvolutionShape& shape, int tk = 0, int splits = 0);
void run_dgrad(const DgradPlan& plan, const float* dy, const float* w, float* dx, int early_blocks,
               cudaStream_t stream);
uint64_t shared_bytes(const DgradPlan& plan);  // 0 where there is no plan

struct WgradPlan {
  struct Data;
  std::shared_ptr<const Data> data;  // empty: there is none
};
WgradPlan wgrad_of(const backends::ConvolutionShape& shape, int tk = 0);
uint64_t workspace_bytes(const WgradPlan& plan);
void run_wgrad(const WgradPlan& plan, const float* dy, const float* x, float* dw, float* workspace, int early_blocks,
               cudaStream_t stream);
uint64_t shared_bytes(const WgradPlan& plan);  // 0 where there is no plan

}  // namespace gpunn::cuda_tiled::direct

namespace gpunn::cuda_tiled {

// direct:1 of the weight gradient: the division of the work, which depends on the shape alone.
struct DirectWgrad {
  backends::ConvolutionShape shape{};
  int images_per_block = 1;
  int filters_per_block = 1;
  int row_splits = 1;  // of the output rows, in a block
  int chunks = 1;      // of the images
  unsigned shared_bytes = 0;

  uint64_t workspace_bytes() const;
};

// Throws Refusal if the kernel does not serve the shape or would not pay. It needs stride and dilation 1, filters of at
// most 7 columns, and room for an image with its gradient in shared memory.
DirectWgrad direct_wgrad_of(const backends::ConvolutionShape& shape);

// dy, x -> dw, with workspace_bytes() of scratch memory.
void run_direct_wgrad(const DirectWgrad& plan, const float* dy, const float* x, float* dw, float* workspace,
                      cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
